// Lists what a reader would object to in a page: its outline, labels, charts, and anything wider than the window.
(() => {
  const told = [];
  const short = (text) => text.trim().slice(0, 60);
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
  if (document.documentElement.lang !== "en") told.push("the page does not declare its language");
  if (!document.title.trim()) told.push("the page has no title");
  if (document.querySelectorAll("h1").length !== 1) told.push("the page does not have exactly one h1");
  let before = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const level = Number(heading.tagName[1]);
    if (level > before + 1) told.push(`a heading skips a level: ${short(heading.textContent)}`);
    before = level;
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) told.push(`an id occurs twice: ${id}`);
  for (const link of document.querySelectorAll("a[href^='#']")) {
    if (!document.getElementById(link.hash.slice(1))) told.push(`a link has no target: ${link.hash}`);
  }
  for (const element of document.querySelectorAll("[role=region], [role=img], [role=group], nav")) {
    if (!(element.getAttribute("aria-label") ?? "").trim()) told.push(`no label: ${short(element.outerHTML)}`);
  }
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) told.push("the page is wider than its window");
  for (const element of document.querySelectorAll("p, dd, dt, pre, li, h1, h2, h3, summary, figcaption, .option")) {
    const box = element.getBoundingClientRect();
    if (shown(element) && !element.closest(".scroll") && box.right > width) told.push(`cut off: ${short(element.textContent)}`);
  }
  if (!window.hostile) {
    for (const chart of document.querySelectorAll("svg.chart")) {
      const texts = [...chart.querySelectorAll("text")].filter(shown);
      const boxes = texts.map((text) => text.getBoundingClientRect());
      texts.forEach((text, at) => {
        const box = boxes[at];
        if (box.width && (box.left < 0 || box.right > width)) told.push(`cut off in chart: ${short(text.textContent)}`);
        for (let other = at + 1; other < texts.length; other++) {
          const across = Math.min(box.right, boxes[other].right) - Math.max(box.left, boxes[other].left);
          const down = Math.min(box.bottom, boxes[other].bottom) - Math.max(box.top, boxes[other].top);
          // Boxes include room for descenders, so small overlaps don't show.
          if (across > 1 && down > 4) told.push(`overlapping text: ${short(text.textContent)} | ${short(texts[other].textContent)}`);
        }
      });
    }
  }
  return told;
})()
