/** What is released, to where, from what. */
export type Release = {
  /** 0.2.0 */
  readonly version: string;
  /** v0.2.0 */
  readonly tag: string;
  /** The full hash of the tagged commit. */
  readonly commit: string;
  /** The commit's time, for everything that has a time in it. */
  readonly created: Date;
  /** HOST[:PORT] */
  readonly registry: string;
  /** The path below the registry, such as the owner on GitHub. */
  readonly repository: string;
  /** REGISTRY/REPOSITORY/archaware-controller, without a tag. */
  readonly image: string;
  /** REGISTRY/REPOSITORY/charts/archaware-controller, without a tag and without oci:// */
  readonly chart: string;
  /** The https URL of the repository, without a slash at its end. */
  readonly source: string;
  /** Where the files of all releases are: SOURCE/releases/download */
  readonly downloads: string;
  /** A clean clone of the tag, with node_modules. */
  readonly checkout: string;
  /** dist/release/VERSION of the checkout in which the release was started. */
  readonly out: string;
  /** A temporary directory, which is removed at the end. */
  readonly work: string;
};

/** A file or an OCI artifact that was made, with its SHA-256 digest: `sha256:` and 64 hexadecimal digits. */
export type Made = { readonly name: string; readonly digest: string };

/** Something that stands in an OCI image layout on disk and is pushed by its digest. */
export type Artifact = {
  /** Path of the image layout directory; its index.json lists exactly the artifact. */
  readonly layout: string;
  /** The digest of the image index, or of the chart's manifest. */
  readonly digest: string;
};
