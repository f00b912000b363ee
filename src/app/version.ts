declare const ARCHAWARE_VERSION: string | undefined;

/** The version that the bundle was built as; `dev` when run from source. */
export const VERSION = typeof ARCHAWARE_VERSION === 'string' ? ARCHAWARE_VERSION : 'dev';

/** How we name ourselves to API servers and registries. */
export const USER_AGENT = `archaware-controller/${VERSION}`;
