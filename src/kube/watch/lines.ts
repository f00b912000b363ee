/** Returns a function that takes bytes as they arrive and calls `onLine` for each line, without its line feed. */
export function splitLines(onLine: (line: Buffer) => void): (piece: Buffer) => void {
  let parts: Buffer[] = [];
  return (piece) => {
    let start = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, start)) {
      const tail = piece.subarray(start, end);
      const line = parts.length === 0 ? tail : Buffer.concat([...parts, tail]);
      parts = [];
      start = end + 1;
      if (line.length > 0) onLine(line);
    }
    if (start < piece.length) parts.push(start === 0 ? piece : piece.subarray(start));
  };
}
