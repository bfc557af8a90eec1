import { isDeepStrictEqual } from 'node:util'

import type { z } from 'zod'

import { callInTime } from '../../shared/async.ts'
import { describeIssue } from '../../protocol/client-input.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ClientContext } from '../../protocol/stream-request.ts'
import type { Principal } from '../auth/authenticate.ts'

/**
 * The input of `toState`.
 *
 * @inline
 */
interface ContextInput extends ClientContext {
  /** The principal, with the attributes that `authenticate` returned. */
  readonly principal: Principal
  readonly chatId: string
}

/**
 * Converts the context of a request to session state.
 *
 * @inline
 */
export interface ContextOptions {
  /** Validates `{ body, metadata }` of the client. Invalid input is rejected with 400 and its path. Default: no validation. */
  readonly schema?: z.ZodType<ClientContext>
  /** Returns the keys to set in the session state. No other data of the client reaches the state. */
  // A method, so that an implementation may declare the type that its `schema` guarantees.
  toState(
    input: ContextInput,
  ): Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>
}

/** Session state to set in a chat. */
export type StateDelta = Readonly<Record<string, unknown>>

const NOTHING: ClientContext = { body: {}, metadata: undefined }

/**
 * Returns the session state to set for a request, or for speech, which has no context (`received` is undefined). Empty without the
 * option `context`.
 */
export async function toSessionState(
  options: ContextOptions | undefined,
  { principal, chatId }: Pick<ContextInput, 'principal' | 'chatId'>,
  received: ClientContext | undefined,
): Promise<StateDelta> {
  if (!options) return {}
  const { schema } = options
  const client = received ?? NOTHING
  const { body, metadata } = schema && received ? check(schema, received) : client
  const input = { principal, chatId, body, metadata }
  const state = await callInTime('`toState` of `context`', () => options.toState(input))
  refuseScopes(state, client)
  return state
}

function check(schema: z.ZodType<ClientContext>, received: ClientContext): ClientContext {
  const parsed = schema.safeParse(received)
  if (parsed.success) return parsed.data
  throw new ProtocolError('bad-request', { message: describeIssue(parsed.error, 'The context') })
}

/** Throws if a client chose a key with an ADK scope, such as `app:`. Only the application sets state of other chats. */
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

/** Returns the entries of a delta that differ from the state. */
export function changesIn(state: StateDelta, delta: StateDelta): Record<string, unknown> {
  const changed = Object.entries(delta).filter(([key, value]) => {
    return !isDeepStrictEqual(state[key], value)
  })
  return Object.fromEntries(changed)
}
