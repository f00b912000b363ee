import { type Panel, ROWS } from './panels.ts';

/** Grafana's grid has 24 columns. */
const COLUMNS = 24;
const HEIGHT = 7;

/** The dashboard as Grafana reads it (its JSON model, schema version 39, Grafana 10.4 and later). */
export function grafanaDashboard(): unknown {
  let y = 0;
  let id = 0;
  const panels = ROWS.flatMap(({ title, panels: shown }) => {
    const row = { id: ++id, type: 'row', title, collapsed: false, panels: [], gridPos: { x: 0, y, w: COLUMNS, h: 1 } };
    y += 1;
    const across = Math.min(shown.length, 3);
    const width = COLUMNS / across;
    const made = shown.map((panel, index) => ({
      id: ++id,
      ...modelOf(panel),
      gridPos: { x: (index % across) * width, y: y + Math.floor(index / across) * HEIGHT, w: width, h: HEIGHT },
    }));
    y += Math.ceil(shown.length / across) * HEIGHT;
    return [row, ...made];
  });
  return {
    title: 'archaware',
    uid: 'archaware-controller',
    description: 'Architecture-aware placement of pods.',
    tags: ['archaware', 'kubernetes'],
    schemaVersion: 39,
    editable: true,
    timezone: '',
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {}, hide: 0 },
      ],
    },
    annotations: { list: [] },
    panels,
  };
}

const DATASOURCE = { type: 'prometheus', uid: '$datasource' };

function modelOf({ title, help, unit, queries, alarmAt }: Panel) {
  const steps = [{ color: 'green', value: null }, ...(alarmAt === undefined ? [] : [{ color: 'red', value: alarmAt }])];
  return {
    type: alarmAt === undefined ? 'timeseries' : 'stat',
    title,
    description: help,
    datasource: DATASOURCE,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(alarmAt === undefined
          ? { custom: { fillOpacity: 8, lineWidth: 1, showPoints: 'never' } }
          : { color: { mode: 'thresholds' }, thresholds: { mode: 'absolute', steps } }),
      },
      overrides: [],
    },
    options:
      alarmAt === undefined
        ? { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } }
        : { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'value', graphMode: 'area' },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}
