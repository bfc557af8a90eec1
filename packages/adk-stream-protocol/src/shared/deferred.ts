/** A promise with the functions that settle it. `Promise.withResolvers` is missing in Node 20. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

export function defer<Value = void>(): Deferred<Value> {
  let settle: Omit<Deferred<Value>, 'promise'> | undefined
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject }
  })
  // A promise calls its executor synchronously.
  return { promise, ...(settle as Omit<Deferred<Value>, 'promise'>) }
}
