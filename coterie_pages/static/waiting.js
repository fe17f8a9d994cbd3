"use strict";
/* Notifies a person who looks at another window that this page waits for an answer. */
(() => {
  const waits = () => document.getElementById("page")?.dataset.waits === "yes";
  let told = waits();

  function tell() {
    const now = waits();
    if (now && !told && document.hidden && Notification.permission === "granted") {
      new Notification("Coterie waits for you");
    }
    told = now;
  }

  if (!("Notification" in window)) return;
  const button = document.getElementById("tell");
  if (button !== null) {
    button.hidden = Notification.permission !== "default";
    button.addEventListener("click", async () => {
      await Notification.requestPermission();
      button.hidden = Notification.permission !== "default";
    });
  }
  const shown = { attributes: true, attributeFilter: ["data-waits"], childList: true, subtree: true };
  new MutationObserver(tell).observe(document.body, shown);
})();
