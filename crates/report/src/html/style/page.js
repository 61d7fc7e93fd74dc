(() => {
  'use strict';
  const all = (what, from = document) => Array.from(from.querySelectorAll(what));
  const root = document.documentElement;
  root.classList.add('js');

  // Dark or light: as the reader's system has it until the button is pressed.
  const key = 'weigh-theme';
  const theme = document.getElementById('theme');
  const store = {
    get: () => { try { return localStorage.getItem(key); } catch { return null; } },
    set: value => { try { localStorage.setItem(key, value); } catch { /* a file may have none */ } },
  };
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const label = () => { theme.textContent = isDark() ? 'Light' : 'Dark'; };
  const stored = store.get();
  if (stored === 'dark' || stored === 'light') root.dataset.theme = stored;
  theme.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    store.set(root.dataset.theme);
    label();
  });
  label();

  // Folds.
  const folds = document.getElementById('folds');
  const unfold = open => {
    all('details').forEach(one => { one.open = open; });
    folds.textContent = open ? 'Close all' : 'Open all';
  };
  folds.addEventListener('click', () => unfold(folds.textContent === 'Open all'));
  addEventListener('beforeprint', () => unfold(true));
  const follow = () => {
    const at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!at) return;
    for (let one = at; one; one = one.parentElement) if (one.tagName === 'DETAILS') one.open = true;
    at.scrollIntoView();
  };
  addEventListener('hashchange', follow);
  document.addEventListener('click', event => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute('href') === location.hash) follow();
  });
  follow();

  // Tables are sorted by a column: numbers with their unit, text by its letters.
  const units = { us: 1e-6, ms: 1e-3, s: 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
  const value = text => {
    const found = /^[^\d+-]{0,4}([+-]?[\d,]*\.?\d+)\s*([a-zA-Z]*)/.exec(text.trim());
    return found ? parseFloat(found[1].replace(/,/g, '')) * (units[found[2]] || 1) : NaN;
  };
  const sort = head => {
    const down = head.getAttribute('aria-sort') === 'ascending';
    const column = head.cellIndex;
    const body = head.closest('table').tBodies[0];
    const text = row => row.cells[column].dataset.v || row.cells[column].textContent;
    const order = (a, b) => {
      const [x, y] = [value(text(a)), value(text(b))];
      if (!head.classList.contains('n') || (isNaN(x) && isNaN(y))) return text(a).localeCompare(text(b), 'en', { numeric: true });
      return isNaN(x) ? 1 : isNaN(y) ? -1 : x - y;
    };
    const rows = Array.from(body.rows).sort(order);
    all('th', head.parentElement).forEach(one => one.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    body.append(...(down ? rows.reverse() : rows));
  };
  all('table.sorts thead th').forEach(head => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => sort(head));
  });

  // The data of the page as files.
  all('button[data-download]').forEach(button => {
    button.hidden = false;
    button.addEventListener('click', () => {
      const text = document.getElementById(button.dataset.from).textContent;
      const content = button.dataset.encoded === 'yes' ? JSON.parse(text) : text.trim() + '\n';
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([content], { type: button.dataset.type }));
      link.download = button.dataset.download;
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  });
})();
