// A figure that is clicked, or chosen by the keyboard, opens in its own size; a click or Escape closes it.
for (const image of document.querySelectorAll("article img")) {
  if (image.closest("a")) continue;
  image.tabIndex = 0;
  image.setAttribute("role", "button");
  image.title = "Enlarge";
  const enlarge = () => {
    const dialog = document.createElement("dialog");
    dialog.className = "enlarged";
    dialog.append(Object.assign(new Image(), { src: image.src, alt: image.alt }));
    dialog.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  };
  image.addEventListener("click", enlarge);
  image.addEventListener("keydown", (event) => event.key === "Enter" && enlarge());
}
