declare const ARCHAWARE_VERSION: string | undefined;

/** The version of the bundle; `dev` when run from source. */
export const VERSION = typeof ARCHAWARE_VERSION === 'string' ? ARCHAWARE_VERSION : 'dev';

/** The User-Agent header for API servers and registries. */
export const USER_AGENT = `archaware-controller/${VERSION}`;
