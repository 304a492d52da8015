// The search of the site runs in a worker, which browsers refuse to pages that are opened as files. There this stands in
// for it: the worker's script runs in a hidden frame, with messages as events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.tell(this, data);
      this.inner.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
      this.ready = this.load(url);
      this.frame = frame;
    }
    load(url) {
      return new Promise((loaded, failed) => {
        const script = this.inner.document.createElement("script");
        Object.assign(script, { src: new URL(url, location.href).href, onload: loaded, onerror: failed });
        this.inner.document.head.append(script);
      });
    }
    tell(target, data) {
      const event = new MessageEvent("message", { data });
      target.dispatchEvent(event);
      if (target === this && this.onmessage) this.onmessage(event);
    }
    postMessage(data) {
      this.ready.then(() => this.tell(this.inner, data));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
