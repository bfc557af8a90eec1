import { INSTANCE_HEADER } from '../../demo-info.ts'

const listeners = new Set<() => void>()
let current: string | undefined

/** The name of the server instance that sent the last response. Undefined if the server has no name. */
export const lastInstance = {
  read: (): string | undefined => current,
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
}

/** `fetch` that records which instance responded. */
export const observedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  const name = response.headers.get(INSTANCE_HEADER)
  if (name !== null && name !== current) {
    current = name
    for (const listener of listeners) listener()
  }
  return response
}
