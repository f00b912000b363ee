/** A request in the registry's access log. */
export interface AccessLogEntry {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly status: number;
  readonly userAgent: string;
}

// Apache's combined log format: host - user [time] "METHOD path HTTP/1.1" status size "referer" "user agent"
const line =
  /^\S+ \S+ \S+ \[[^\]]*\] "(?<method>[A-Z]+) (?<path>\S+) [^"]*" (?<status>\d{3}) \d+ "[^"]*" "(?<userAgent>[^"]*)"$/;

/** Parses the registry's standard output; other lines are left out. */
export const parseAccessLog = (log: string): AccessLogEntry[] =>
  log.split('\n').flatMap((text) => {
    const { method, path, status, userAgent } = line.exec(text)?.groups ?? {};
    if (method === undefined || path === undefined || userAgent === undefined) return [];
    return [{ method, path, status: Number(status), userAgent }];
  });
