(() => {
  const where = document.body.dataset.events, word = document.getElementById("live");
  if (!where || !window.EventSource) return;
  const source = new EventSource(where);
  const say = (text, on) => { word.textContent = text; word.classList.toggle("on", on); };
  source.onopen = () => say("live", true);
  source.onerror = () => say("waiting for the server", false);
  source.addEventListener("part", (event) => {
    const part = JSON.parse(event.data), old = document.getElementById(part.id);
    if (!old) return;
    const open = Array.from(old.querySelectorAll("details"), (one) => one.open);
    old.innerHTML = part.html;
    old.querySelectorAll("details").forEach((one, place) => { one.open = Boolean(open[place]); });
  });
})();
