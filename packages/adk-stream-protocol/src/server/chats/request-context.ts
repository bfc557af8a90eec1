import { isDeepStrictEqual } from 'node:util'

import type { z } from 'zod'

import { ProtocolError } from '../../protocol/errors.ts'
import type { ClientContext } from '../../protocol/stream-request.ts'
import type { Principal } from '../auth/authenticate.ts'

/** What the session state of a chat is made from when a person says something. */
export interface ContextInput extends ClientContext {
  /** Who is asking, with the attributes that `authenticate` gave. */
  readonly principal: Principal
  readonly chatId: string
}

/** How the context of a request becomes session state. */
export interface ContextOptions {
  /** Checks `{ body, metadata }` of the client. What does not fit is refused with 400 and where. Default: anything is passed on. */
  readonly schema?: z.ZodType<ClientContext>
  /** The keys to set in the session state. Nothing else of the client reaches the state. */
  // A method, so that a function may name the type that its `schema` makes sure of.
  toState(
    input: ContextInput,
  ): Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>
}

/** What is set in the session state of a chat. */
export type StateDelta = Readonly<Record<string, unknown>>

const NOTHING: ClientContext = { body: {}, metadata: undefined }

/** Makes session state of what a request tells beside its message. */
export class RequestContext {
  readonly #options: ContextOptions | undefined

  constructor(options: ContextOptions | undefined) {
    this.#options = options
  }

  /** The state to set for a request, or for a principal that only speaks. Empty without the option. */
  async toState(
    principal: Principal,
    chatId: string,
    given: ClientContext | undefined,
  ): Promise<StateDelta> {
    if (!this.#options) return {}
    const { schema } = this.#options
    const client = given ?? NOTHING
    // Sound and text frames carry no context: there is nothing to check.
    const { body, metadata } = schema && given ? check(schema, given) : client
    const state = await this.#options.toState({ principal, chatId, body, metadata })
    refuseScopes(state, client)
    return state
  }
}

function check(schema: z.ZodType<ClientContext>, given: ClientContext): ClientContext {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const place = issue?.path.join('.') ?? ''
  const message = `${place === '' ? 'The context' : place}: ${issue?.message ?? 'unexpected shape'}`
  throw new ProtocolError('bad-request', { message })
}

/** State of all chats or of the whole application is set by the application: a client that names such a key has chosen it itself. */
function refuseScopes(state: StateDelta, { body, metadata }: ClientContext): void {
  const chosen = new Set([...Object.keys(body), ...keysOf(metadata)])
  const escaping = Object.keys(state).find((key) => SCOPED.test(key) && chosen.has(key))
  if (escaping === undefined) return
  const message = `The request names ${JSON.stringify(escaping)}, which is not a key of this chat.`
  throw new ProtocolError('bad-request', { message })
}

const SCOPED = /^(?:app|user|temp):/

function keysOf(value: unknown): string[] {
  return typeof value === 'object' && value !== null ? Object.keys(value) : []
}

/** The part of a delta that would change a state. */
export function changesIn(state: StateDelta, delta: StateDelta): Record<string, unknown> {
  const changed = Object.entries(delta).filter(([key, value]) => {
    return !isDeepStrictEqual(state[key], value)
  })
  return Object.fromEntries(changed)
}
