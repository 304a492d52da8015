// Light or dark: as the reader chose last, else as the system says. Runs before the first paint.
const THEME_KEY = "graphrag-eval-lc-theme";

function storedTheme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null; // storage may be forbidden for files
  }
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  if (!button) return;
  const other = theme === "dark" ? "light" : "dark";
  button.hidden = false;
  button.textContent = other === "dark" ? "☾ Dark" : "☀ Light";
  button.setAttribute("aria-label", `Use ${other} colours`);
}

const system = matchMedia("(prefers-color-scheme: dark)");
const themeNow = () => storedTheme() ?? (system.matches ? "dark" : "light");

applyTheme(themeNow());
system.addEventListener("change", () => applyTheme(themeNow()));
document.addEventListener("DOMContentLoaded", () => {
  applyTheme(themeNow());
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(THEME_KEY, theme);
    } catch {
      // the choice then lasts as long as the page
    }
    applyTheme(theme);
  });
});
