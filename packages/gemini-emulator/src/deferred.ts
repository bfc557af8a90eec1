/** A promise and its two ends; `Promise.withResolvers` is not in Node 20. */
export interface Deferred<T> extends Ends<T> {
  readonly promise: Promise<T>
}

interface Ends<T> {
  resolve: (value: T) => void
  reject: (reason: unknown) => void
}

export function defer<T>(): Deferred<T> {
  const ends: Partial<Ends<T>> = {}
  const promise = new Promise<T>((resolve, reject) => {
    ends.resolve = resolve
    ends.reject = reject
  })
  // The executor has run when the constructor returns, so both ends are set.
  return { promise, ...(ends as Ends<T>) }
}
