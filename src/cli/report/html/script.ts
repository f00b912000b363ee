/**
 * The script of the page. It stands in the head: it says at once that there is a script, so that long tables start short, and does
 * the rest when the page is complete. The table is its only data, and it writes text only (`textContent`).
 */
export const SCRIPT = String.raw`
'use strict';
document.documentElement.classList.add('js');
document.addEventListener('DOMContentLoaded', () => {
  const STEP = 200;
  const byId = (id) => document.getElementById(id);
  const [table, filters, status] = [byId('table'), byId('filters'), byId('count')];
  const [text, namespace, target, state] = [byId('text'), byId('namespace'), byId('target'), byId('state')];
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const entries = Array.from(body.rows, (row) => {
    const cells = Array.from(row.cells);
    return {
      row,
      cells,
      text: cells.map((cell) => cell.textContent).join('\n').toLowerCase(),
      namespace: cells[0].textContent,
      states: cells.filter((cell) => 's' in cell.dataset).map((cell) => cell.dataset.s),
    };
  });
  const collator = new Intl.Collator('en', { numeric: true });
  let matching = entries;
  let limit = STEP;
  let sorted = '';

  const number = (value) => value.toLocaleString('en-US');
  const nounFor = (value) => (value === 1 ? ' workload' : ' workloads');

  function show() {
    matching.forEach((entry, at) => entry.row.classList.toggle('later', at >= limit));
    const shown = Math.min(limit, matching.length);
    let words = number(matching.length) + nounFor(matching.length);
    if (matching.length < entries.length) words = number(matching.length) + ' of ' + number(entries.length) + nounFor(entries.length);
    if (matching.length === 0) words = 'No workload matches the filters';
    if (shown < matching.length) words += ', the first ' + number(shown) + ' are shown';
    status.textContent = words + sorted + '.';
    byId('more').hidden = shown === matching.length;
  }

  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter((word) => word !== '');
    const wanted = (found) => (state.value === 'not-ready' ? found !== 'ready' : found === state.value);
    matching = [];
    for (const entry of entries) {
      const states = target.value === '' ? entry.states : [entry.states[Number(target.value)]];
      const matches =
        (namespace.value === '' || entry.namespace === namespace.value) &&
        (state.value === '' || states.some(wanted)) &&
        words.every((word) => entry.text.includes(word));
      entry.row.hidden = !matches;
      if (matches) matching.push(entry);
    }
    limit = STEP;
    show();
  }

  // With one target chosen, the columns of the others go.
  function showTargets() {
    heads.filter((head) => 'target' in head.dataset).forEach((head, at) => {
      const hidden = target.value !== '' && Number(target.value) !== at;
      if (head.hidden === hidden) return;
      head.hidden = hidden;
      for (const entry of entries) entry.cells[head.cellIndex].hidden = hidden;
    });
  }

  function sort(head) {
    const column = head.cellIndex;
    const numeric = head.classList.contains('n');
    const before = head.getAttribute('aria-sort');
    const direction = before === null ? (numeric ? 'descending' : 'ascending') : before === 'ascending' ? 'descending' : 'ascending';
    const sign = direction === 'ascending' ? 1 : -1;
    for (const other of heads) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', direction);
    const keyed = entries.map((entry) => {
      const cell = entry.cells[column];
      return { entry, key: 'v' in cell.dataset ? Number(cell.dataset.v) : cell.textContent };
    });
    keyed.sort((one, other) => sign * (typeof one.key === 'number' ? one.key - other.key : collator.compare(one.key, other.key)));
    keyed.forEach(({ entry }, at) => { entries[at] = entry; });
    body.append(...entries.map((entry) => entry.row));
    sorted = ', sorted by ' + head.textContent.toLowerCase() + ' (' + direction + ')';
    filter();
  }

  // The columns are those of the command's own CSV. A spreadsheet runs a text that begins like a formula, so such a text gets an apostrophe.
  const field = (value) => '"' + (/^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) ? "'" + value : value).replace(/"/g, '""') + '"';
  const items = (cell) => Array.from(cell.querySelectorAll('li'), (item) => item.textContent);

  function fields(cell) {
    if ('s' in cell.dataset) return [cell.dataset.s, items(cell).join('; ')];
    if ('v' in cell.dataset) return [cell.dataset.v];
    return [cell.querySelector('ul') === null ? cell.textContent : items(cell).join(' ')];
  }

  let address;
  function exportRows() {
    const visible = heads.filter((head) => !head.hidden);
    const isTarget = (head) => 'target' in head.dataset;
    const columns = [...visible.filter((head) => !isTarget(head)), ...visible.filter(isTarget)];
    const names = columns.flatMap((head) => {
      const name = head.textContent;
      if (isTarget(head)) return [name, name + ' why'];
      return [name === 'Cores' ? 'cpu' : name.toLowerCase()];
    });
    const rows = matching.map((entry) => columns.flatMap((head) => fields(entry.cells[head.cellIndex])));
    const csv = [names, ...rows].map((row) => row.map(field).join(',') + '\r\n').join('');
    if (address !== undefined) URL.revokeObjectURL(address);
    address = URL.createObjectURL(new Blob(['\ufeff', csv], { type: 'text/csv;charset=utf-8' }));
    const link = document.createElement('a');
    link.href = address;
    link.download = 'archaware-report.csv';
    link.click();
    status.textContent = number(rows.length) + nounFor(rows.length) + ' exported as archaware-report.csv.';
  }

  filters.addEventListener('input', () => { showTargets(); filter(); });
  filters.addEventListener('submit', (event) => event.preventDefault());
  byId('clear').addEventListener('click', () => {
    filters.reset();
    showTargets();
    filter();
    text.focus();
  });
  table.tHead.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button !== null) sort(button.closest('th'));
  });
  byId('export').addEventListener('click', exportRows);
  byId('next').addEventListener('click', () => { limit += STEP; show(); });
  byId('all').addEventListener('click', () => { limit = Infinity; show(); });
  byId('theme').addEventListener('change', (event) => {
    if (event.target.value === '') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = event.target.value;
  });
  document.addEventListener('click', (event) => {
    const all = event.target.closest('[data-show-all]');
    if (all !== null) {
      const more = all.closest('p');
      for (const row of more.previousElementSibling.querySelectorAll('.later')) row.classList.remove('later');
      more.hidden = true;
    }
    // A tile or a namespace leads to its workloads.
    const link = event.target.closest('a[data-state], a[data-namespace]');
    if (link !== null) {
      filters.reset();
      namespace.value = link.dataset.namespace ?? '';
      state.value = link.dataset.state ?? '';
      target.value = target.options.length > 1 ? (link.dataset.target ?? '') : '';
      showTargets();
      filter();
      byId('workloads').focus();
    }
  });
  filter();
});
`;
