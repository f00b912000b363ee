import { expect } from 'chai';
import type { WatchEvent } from '../../hack/cluster/client.ts';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { type Context, createPod, done, NAMESPACE, NOWHERE, PODS, podOf, refused, versionOf } from './context.ts';

const MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const names = (body: unknown) => objects(at(body, 'items')).map((item) => text(at(item, 'metadata', 'name')));

export function describeLists(context: () => Context): void {
  const get = async (path: string) => done(await context().client.request('GET', path));

  before(async () => {
    for (const name of ['page-1', 'page-2', 'page-3', 'page-4', 'page-5']) {
      await createPod(context(), name, NOWHERE, { labels: { list: 'paged', [name]: 'yes' } });
    }
  });

  it('arrives in pages of one version, also over all namespaces', async () => {
    for (const path of [PODS, '/api/v1/pods']) {
      const query = `${path}?labelSelector=list%3Dpaged&limit=2`;
      const pages: JsonObject[] = [await get(query)];
      for (let page = pages[0]; text(at(page, 'metadata', 'continue')) !== ''; page = pages.at(-1)) {
        pages.push(await get(`${query}&continue=${encodeURIComponent(text(at(page, 'metadata', 'continue')))}`));
      }
      expect(pages.map((page) => names(page).length)).to.deep.equal([2, 2, 1]);
      expect(pages.flatMap(names)).to.deep.equal(['page-1', 'page-2', 'page-3', 'page-4', 'page-5']);
      expect(new Set(pages.map(versionOf)).size).to.equal(1);
    }
  });

  it('states kind and apiVersion once', async () => {
    const body = await get(PODS);
    expect([body.kind, body.apiVersion]).to.deep.equal(['PodList', 'v1']);
    expect(objects(body.items)[0]).to.not.have.any.keys('kind', 'apiVersion');
  });

  it('refuses a continue token that the server never gave', async () => {
    refused(await context().client.request('GET', `${PODS}?limit=2&continue=nonsense`), 400, 'BadRequest');
  });

  const selections: readonly (readonly [string, readonly string[]])[] = [
    ['fieldSelector=metadata.name%3Dpage-2', ['page-2']],
    ['labelSelector=list%3Dpaged,page-3', ['page-3']],
    ['labelSelector=list+in+(paged),!page-1,page-2!%3Dyes,page-3+notin+(yes)', ['page-4', 'page-5']],
    ['labelSelector=list%3Dpaged&fieldSelector=spec.nodeName!%3D', []],
    ['labelSelector=page-1&fieldSelector=spec.nodeName%3D,status.phase%3DPending', ['page-1']],
  ];
  for (const [query, expected] of selections) {
    it(`selects by ${decodeURIComponent(query)}`, async () => {
      expect(names(await get(`${PODS}?${query}`))).to.deep.equal(expected);
    });
  }

  it('refuses a field that cannot be selected', async () => {
    refused(await context().client.request('GET', `${PODS}?fieldSelector=spec.tolerations%3Dx`), 400, 'BadRequest');
  });
}

export function describeWatches(context: () => Context): void {
  const now = async (path: string) => text(versionOf(done(await context().client.request('GET', `${path}?limit=1`))));
  /** Returns the next event that matters to the row. */
  const next = async (events: AsyncGenerator<WatchEvent>, wanted: (event: WatchEvent) => boolean) => {
    for (;;) {
      const { value, done: over } = await events.next();
      if (over) throw new Error('the watch ended');
      if (wanted(value)) return value;
    }
  };
  const about = (name: string) => (event: WatchEvent) => at(event.object, 'metadata', 'name') === name;

  it('reports what is added, modified, deleted, from the version of a list on', async () => {
    const { client } = context();
    const from = await now(PODS);
    await createPod(context(), 'watched', NOWHERE);
    const events = client.watch(`${PODS}?watch=1&resourceVersion=${from}&timeoutSeconds=20`);
    expect((await next(events, about('watched'))).type).to.equal('ADDED');
    done(await client.request('PATCH', `${PODS}/watched`, { metadata: { labels: { a: 'b' } } }));
    const labelled = await next(
      events,
      (event) => about('watched')(event) && at(event.object, 'metadata', 'labels', 'a') === 'b',
    );
    expect([labelled.type, labelled.object.kind, labelled.object.apiVersion]).to.deep.equal(['MODIFIED', 'Pod', 'v1']);
    done(await client.request('DELETE', `${PODS}/watched`));
    const deleted = await next(events, ({ type }) => type === 'DELETED');
    expect(Number(versionOf(deleted.object))).to.be.greaterThan(Number(versionOf(labelled.object)));
    await events.return();
  });

  it('begins with the existing objects if it has no version', async () => {
    await createPod(context(), 'present', NOWHERE, { labels: { watch: 'present' } });
    for (const version of ['', '&resourceVersion=0']) {
      const events = context().client.watch(
        `${PODS}?watch=1&labelSelector=watch%3Dpresent&timeoutSeconds=20${version}`,
      );
      const { type, object } = await next(events, about('present'));
      expect([type, at(object, 'metadata', 'name')]).to.deep.equal(['ADDED', 'present']);
      await events.return();
    }
  });

  it('reports an object that no longer matches as deleted, and one that does again as added', async () => {
    const { client } = context();
    const from = await now(PODS);
    await createPod(context(), 'matching', NOWHERE, { labels: { match: 'yes' } });
    const label = (match: string) => client.request('PATCH', `${PODS}/matching`, { metadata: { labels: { match } } });
    done(await label('no'));
    done(await label('yes'));
    const events = client.watch(`${PODS}?watch=1&labelSelector=match%3Dyes&resourceVersion=${from}&timeoutSeconds=20`);
    const types: string[] = [];
    while (types.length < 3) {
      const { type } = await next(events, () => true);
      if (type !== 'MODIFIED') types.push(type);
    }
    expect(types).to.deep.equal(['ADDED', 'DELETED', 'ADDED']);
    await events.return();
  });

  it('ends when its time is over, with nothing else', async () => {
    const events = context().client.watch(`${MAPS}?watch=1&resourceVersion=${await now(MAPS)}&timeoutSeconds=1`);
    expect((await events.next()).done).to.equal(true);
  });

  it('sends bookmarks that carry only a version, if there is a newer one', async () => {
    const { client } = context();
    const version = await now(MAPS);
    // The bookmark comes two seconds before the end, and the object has to be there by then.
    const query = 'watch=1&allowWatchBookmarks=true&timeoutSeconds=9';
    const events = client.watch(`${MAPS}?${query}&resourceVersion=${version}`);
    const first = next(events, () => true);
    const elsewhere = '/api/v1/namespaces/default/configmaps';
    done(await client.request('POST', elsewhere, { metadata: { name: 'contract' } }));
    const { type, object } = await first;
    expect([type, object.kind]).to.deep.equal(['BOOKMARK', 'ConfigMap']);
    expect(Number(versionOf(object))).to.be.greaterThan(Number(version));
    await events.return();
    done(await client.request('DELETE', `${elsewhere}/contract`));
  });

  it('ends when the server stops; a version from before is too old afterwards, as its stream says', async () => {
    const { client, cluster } = context();
    const before = await now(PODS);
    await createPod(context(), 'before-the-stop', NOWHERE);
    const events = client.watch(`${PODS}?watch=1&resourceVersion=${before}&timeoutSeconds=60`);
    await next(events, about('before-the-stop'));
    const ended = events.next().then(
      ({ done: over }) => over,
      () => true,
    );
    await cluster.stopApiServer();
    expect(await ended).to.equal(true);
    await cluster.startApiServer();
    const again = client.watch(`${PODS}?watch=1&resourceVersion=${before}&timeoutSeconds=20`);
    const { type, object } = await next(again, () => true);
    expect(type).to.equal('ERROR');
    expect(object).to.deep.include({ kind: 'Status', status: 'Failure', code: 410, reason: 'Expired' });
    expect(object.message).to.match(/^too old resource version: \d+ \(\d+\)$/);
    await again.return();
    done(await client.request('GET', `${PODS}/before-the-stop`));
  });

  it('reports nothing of a dry run, which stores nothing', async () => {
    const { client } = context();
    done(await client.request('POST', `${PODS}?dryRun=All`, podOf('dry')));
    refused(await client.request('GET', `${PODS}/dry`), 404, 'NotFound');
  });
}
