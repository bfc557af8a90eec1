/** Runs a statement in a transaction of its own. Returns the rows of its result. */
export type Query<Row = unknown> = (...values: readonly QueryValue[]) => Promise<readonly Row[]>

export type QueryValue = string | number | Buffer | null | readonly string[]

/** A binary column. SQLite returns an ArrayBuffer. */
export type Bytes = Buffer | ArrayBuffer

export function toBuffer(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)
}
