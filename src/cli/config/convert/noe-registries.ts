import type { Draft } from './conversion.ts';
import { type Flags, items } from './noe-arguments.ts';

type Proxy = { readonly registry: string; readonly endpoint: string };

/** Converts proxies, private registries, and the kubelet's credential plug-ins. */
export function carryRegistries(flags: Flags, draft: Draft): void {
  carryProxies(flags.get('registry-proxies'), draft);
  const patterns = items(flags.get('private-registries'));
  const known = patterns.flatMap((pattern) => privatePatterns(pattern, draft));
  if (known.length > 0) {
    draft.carry('registries.private', [...new Set(known)], '--private-registries', flags.get('private-registries'));
  }
  carryPlugins(flags, draft);
}

/** Noe asks only the proxy. It goes through the list once, so a later entry may replace a proxy again. */
function carryProxies(text: string | undefined, draft: Draft): void {
  const flag = '--registry-proxies';
  const proxies = items(text).flatMap((item): Proxy[] => {
    const cut = item.indexOf('=');
    if (cut > 0 && !/[*?[\\]/.test(item.slice(0, cut))) {
      return [{ registry: item.slice(0, cut), endpoint: item.slice(cut + 1) }];
    }
    const why =
      cut > 0
        ? 'a pattern; registries.mirrors names each registry'
        : 'not of the form registry=proxy; Noe ignores it too';
    draft.note(flag, item, why);
    return [];
  });
  const mirrors: Record<string, unknown> = {};
  proxies.forEach(({ registry }, first) => {
    if (Object.hasOwn(mirrors, registry)) return;
    const last = proxies
      .slice(first)
      .reduce((host, proxy) => (proxy.registry === host ? proxy.endpoint : host), registry);
    mirrors[registry] = { endpoints: [last], fallback: false };
    if (last.includes('/')) {
      draft.note(
        flag,
        `${registry}=${last}`,
        'asked here for /v2/<path>/<image>, where Noe asks for /<path>/v2/<image>',
      );
    }
  });
  if (Object.keys(mirrors).length > 0) draft.carry('registries.mirrors', mirrors, flag, text);
}

/**
 * Converts the kubelet's `*.example.com[:port][/path]` (any port if it has none) to archaware's patterns of whole
 * names.
 */
function privatePatterns(pattern: string, draft: Draft): string[] {
  if (/[[\\\s]/.test(pattern)) {
    draft.note(
      '--private-registries',
      pattern,
      'has a class of characters; in registries.private only * and ? are wildcards',
    );
    return [];
  }
  const [host = '', ...path] = pattern.split('/');
  const rest = path.length === 0 || path.join('') === '' ? '/*' : `/${path.join('/')}*`;
  return host.includes(':') ? [`${host}${rest}`] : [`${host}${rest}`, `${host}:*${rest}`];
}

/** If both are configured, Noe uses the plug-ins, and so does archaware. */
function carryPlugins(flags: Flags, draft: Draft): void {
  const [configFlag, directoryFlag] = ['image-credential-provider-config', 'image-credential-provider-bin-dir'];
  const [config = '', directory = ''] = [flags.get(configFlag), flags.get(directoryFlag)];
  if (config !== '' && directory !== '') {
    draft.carry('credentials.kubelet.config', config, `--${configFlag}`);
    draft.carry('credentials.kubelet.binDirectory', directory, `--${directoryFlag}`);
    draft.note(`--${configFlag}`, config, `mount it and ${directory} at the same paths`);
    return;
  }
  const [flag, value, other] =
    config === '' ? [directoryFlag, directory, configFlag] : [configFlag, config, directoryFlag];
  if (value !== '') draft.note(`--${flag}`, value, `without --${other} Noe asks no plug-in; left out`);
}
