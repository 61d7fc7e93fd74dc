(() => {
  'use strict';
  const form = document.querySelector('form.filters');
  if (!form) return;
  form.hidden = false;
  form.addEventListener('submit', event => event.preventDefault());
  const rows = Array.from(document.querySelectorAll('table.board tbody tr'));
  const choices = Array.from(form.querySelectorAll('select'));
  const search = form.querySelector('input');
  const count = form.querySelector('output');
  const show = () => {
    const text = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const levels = row.dataset.l.split(' ');
      const fits = choices.every(one => one.value === '' || levels[one.dataset.factor] === one.value);
      row.hidden = !fits || !row.cells[0].textContent.toLowerCase().includes(text);
      if (!row.hidden) shown += 1;
    }
    count.textContent = shown + ' of ' + rows.length + ' rows';
  };
  form.addEventListener('input', show);
  show();
})();
