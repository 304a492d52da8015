// Starts the trend: everything is in the page already, only its boxes are watched.

watchScrollBoxes();
