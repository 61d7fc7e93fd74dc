(() => {
  const width = document.documentElement.clientWidth, found = [];
  const named = e => e.tagName + '.' + (e.getAttribute('class') || '') + ' ' + e.textContent.trim().slice(0, 40);
  const beyond = document.documentElement.scrollWidth - width;
  if (beyond > 0) found.push('the page is ' + beyond + ' px too wide');
  for (const e of document.querySelectorAll('body *')) {
    const box = e.parentElement.closest('.scroll, .wide, nav, svg');
    const r = e.getBoundingClientRect();
    if (!box && r.width > 0 && (r.right > width + 1 || r.left < -1)) found.push('beyond the window: ' + named(e));
  }
  for (const svg of document.querySelectorAll('figure svg')) {
    const frame = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')];
    if (!frame.width || svg.parentElement.closest('svg')) continue;
    const rects = texts.map(t => t.getBoundingClientRect());
    texts.forEach((text, i) => {
      const r = rects[i];
      if (r.left < frame.left - 8 || r.right > frame.right + 8) found.push('cut off: ' + named(text));
      for (let k = 0; k < i; k++) {
        const s = rects[k];
        const across = Math.min(r.right, s.right) - Math.max(r.left, s.left);
        const down = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
        if (across > 1 && down > 4) found.push('overlap in ' + named(svg) + ': ' + named(text) + ' and ' + named(texts[k]));
      }
    });
  }
  for (const link of width > 640 ? document.querySelectorAll('.bar nav a') : []) {
    const r = link.getBoundingClientRect(), bar = link.parentElement.getBoundingClientRect();
    if (r.right > bar.right + 1) found.push('cut off: ' + named(link));
  }
  for (const row of document.querySelectorAll(width > 640 ? 'none' : '.stack tbody tr')) {
    const lines = [...row.children].map(cell => parseFloat(getComputedStyle(cell).borderBottomWidth) > 0);
    if (lines.pop() || lines.includes(false)) found.push('lines between cells: ' + named(row));
  }
  for (const figure of document.querySelectorAll('figure')) {
    if (!figure.querySelector('.mark, .curve, .whisker, .box, .rows .fig, path')) found.push('empty: ' + named(figure));
  }
  return found.slice(0, 8);
})()