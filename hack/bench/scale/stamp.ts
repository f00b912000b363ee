/**
 * A text with numbers in it, of which copies with other numbers are made cheaply: one copy of bytes, and the digits. This lets one
 * process serve a hundred thousand objects that it does not keep.
 */
export type Stamp = {
  /** Bytes of each copy. */
  readonly size: number;
  /** Writes a copy, and returns the position after it. `values`: in the order of the fields. */
  write(into: Buffer, at: number, values: readonly number[]): number;
  /** Returns a copy. */
  make(values: readonly number[]): Buffer;
};

/** The number of digits of each field, by its name. */
export type Fields = Readonly<Record<string, number>>;

type Hole = { readonly at: number; readonly width: number; readonly field: number };

/** Creates a stamp of a text in which `@name@` stands for a field. All of the text is ASCII. */
export function createStamp(text: string, fields: Fields): Stamp {
  const names = Object.keys(fields);
  const holes: Hole[] = [];
  let plain = '';
  let rest = 0;
  for (const match of text.matchAll(/@([a-z]+)@/g)) {
    const field = names.indexOf(match[1] ?? '');
    const width = fields[match[1] ?? ''] ?? 0;
    if (field < 0) throw new Error(`@${match[1]}@ is not one of ${names.join(', ')}`);
    plain += text.slice(rest, match.index);
    holes.push({ at: plain.length, width, field });
    plain += '0'.repeat(width);
    rest = match.index + match[0].length;
  }
  const bytes = Buffer.from(plain + text.slice(rest), 'latin1');

  function write(into: Buffer, at: number, values: readonly number[]): number {
    bytes.copy(into, at);
    for (const hole of holes) {
      let value = values[hole.field] ?? 0;
      for (let digit = at + hole.at + hole.width - 1; digit >= at + hole.at; digit -= 1) {
        into[digit] = 48 + (value % 10);
        value = Math.floor(value / 10);
      }
    }
    return at + bytes.length;
  }

  return {
    size: bytes.length,
    write,
    make(values) {
      const copy = Buffer.allocUnsafe(bytes.length);
      write(copy, 0, values);
      return copy;
    },
  };
}

/** Fills in some fields of a text and leaves the others. */
export function fillIn(text: string, fields: Fields, values: Readonly<Record<string, number>>): string {
  return text.replace(/@([a-z]+)@/g, (hole, name: string) => {
    const value = values[name];
    return value === undefined ? hole : String(value).padStart(fields[name] ?? 0, '0');
  });
}
