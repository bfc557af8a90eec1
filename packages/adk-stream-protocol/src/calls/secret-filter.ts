import type { AuthCredential, Context } from '@google/adk'

import { toError } from '../agent/adk-workarounds/guard-tool.ts'

const REMOVED = '[removed: a credential]'

/**
 * Removes the credentials that a tool received from everything that would be stored or sent: its result, its error and the
 * session state that it changes. ADK's OpenAPI tools write the credential into the session state.
 */
export class SecretFilter {
  readonly #toolContext: Context
  readonly #secrets = new Set<string>()

  constructor(toolContext: Context) {
    this.#toolContext = toolContext
  }

  add({ apiKey, oauth2 }: AuthCredential): void {
    for (const secret of [apiKey, oauth2?.accessToken])
      if (secret !== undefined && secret !== '') this.#secrets.add(secret)
  }

  async run(run: () => Promise<unknown>): Promise<unknown> {
    try {
      return this.#clean(await run())
    } catch (thrown) {
      throw this.#cleanError(toError(thrown))
    } finally {
      this.#cleanState()
    }
  }

  #clean(value: unknown): unknown {
    if (this.#secrets.size === 0 || !this.#contains(value)) return value
    if (typeof value === 'string') return this.#replace(value)
    if (Array.isArray(value)) return value.map((item) => this.#clean(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [this.#replace(name), this.#clean(item)]),
    )
  }

  #cleanError(error: Error): Error {
    const texts = [error.message, error.stack ?? '', describe(error.cause)]
    if (!texts.some((text) => this.#contains(text))) return error
    const cleaned = new Error(this.#replace(error.message))
    cleaned.name = error.name
    cleaned.stack = this.#replace(error.stack ?? '')
    return cleaned
  }

  #cleanState(): void {
    const { actions, invocationContext } = this.#toolContext
    for (const [name, value] of Object.entries(actions.stateDelta)) {
      if (!this.#contains(value)) continue
      Reflect.deleteProperty(actions.stateDelta, name)
      Reflect.deleteProperty(invocationContext.session.state, name)
    }
  }

  #contains(value: unknown): boolean {
    const text = typeof value === 'string' ? value : describe(value)
    for (const secret of this.#secrets)
      if (text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1))) return true
    return false
  }

  #replace(text: string): string {
    let replaced = text
    for (const secret of this.#secrets) replaced = replaced.replaceAll(secret, REMOVED)
    return replaced
  }
}

function describe(value: unknown): string {
  if (value instanceof Error)
    return `${value.message} ${value.stack ?? ''} ${describe(value.cause)}`
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    // A value that is not JSON cannot be stored or sent.
    return ''
  }
}
