/**
 * The script of the page, at its end. It adds what is of no use without a script: buttons that sort, filters, the export. The tables
 * are its only data, and it writes text only (`textContent`).
 */
export const SCRIPT = String.raw`
'use strict';
const form = document.getElementById('filters');
const { text, state } = form.elements;
const table = form.parentElement.querySelector('table');
const heads = Array.from(table.tHead.rows[0].cells);
const entries = Array.from(table.tBodies[0].rows, (row) => ({
  row,
  text: row.textContent.toLowerCase(),
  states: Array.from(row.querySelectorAll('[data-state]'), (cell) => cell.dataset.state),
}));

function filter() {
  const words = text.value.toLowerCase().split(/\s+/);
  const wanted = (found) => (state.value === 'not-ready' ? found !== 'ready' : found === state.value);
  let shown = 0;
  for (const entry of entries) {
    const matches =
      words.every((word) => entry.text.includes(word)) && (state.value === '' || entry.states.some(wanted));
    entry.row.hidden = !matches;
    if (matches) shown += 1;
  }
  document.getElementById('count').textContent = shown + ' of ' + entries.length + ' workloads';
}

const collator = new Intl.Collator('en', { numeric: true });
function sort(head) {
  const body = head.closest('table').tBodies[0];
  const direction = head.getAttribute('aria-sort') === 'ascending' ? 'descending' : 'ascending';
  const sign = direction === 'ascending' ? 1 : -1;
  for (const other of head.parentElement.cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', direction);
  const keyed = Array.from(body.rows, (row) => {
    const cell = row.cells[head.cellIndex];
    return { row, key: 'v' in cell.dataset ? Number(cell.dataset.v) : cell.textContent };
  });
  keyed.sort(({ key: one }, { key: other }) =>
    sign * (typeof one === 'number' ? one - other : collator.compare(one, other)));
  body.append(...keyed.map(({ row }) => row));
}

// A spreadsheet runs a text that begins like a formula, so such a text gets an apostrophe.
const quoted = (value) =>
  '"' + (/^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) ? "'" + value : value).replace(/"/g, '""') + '"';
const items = (cell) => Array.from(cell.querySelectorAll('li'), (item) => item.textContent).join('; ');

function fields(cell) {
  if ('state' in cell.dataset) return [cell.dataset.state, items(cell)];
  return [cell.dataset.v ?? (cell.querySelector('ul') === null ? cell.textContent : items(cell))];
}

let address;
function exportRows() {
  const isTarget = (head) => entries.length > 0 && 'state' in entries[0].row.cells[head.cellIndex].dataset;
  const names = heads.flatMap((head) =>
    isTarget(head) ? [head.textContent, head.textContent + ' why'] : [head.textContent.toLowerCase()]);
  const rows = Array.from(table.tBodies[0].rows).filter((row) => !row.hidden);
  const lines = [names, ...rows.map((row) => Array.from(row.cells).flatMap(fields))];
  const csv = lines.map((line) => line.map(quoted).join(',') + '\r\n').join('');
  if (address !== undefined) URL.revokeObjectURL(address);
  address = URL.createObjectURL(new Blob(['\ufeff', csv], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = 'archaware-report.csv';
  link.click();
}

for (const head of document.querySelectorAll('thead th')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.append(...head.childNodes);
  button.addEventListener('click', () => sort(head));
  head.append(button);
}
form.addEventListener('input', filter);
form.addEventListener('submit', (event) => event.preventDefault());
document.getElementById('export').addEventListener('click', exportRows);
form.hidden = false;
filter();
`;
