import type { IncomingMessage, ServerResponse } from 'node:http'

import { type Authenticate, ProtocolError } from 'adk-stream-protocol/server'

import { toAuthenticateRequest, writeJson } from './requests.ts'

/** The session of a chat, as ADK stores it. */
interface StoredSession {
  readonly id: string
  readonly appName: string
  readonly userId: string
  readonly state: Readonly<Record<string, unknown>>
  readonly events: readonly unknown[]
  readonly lastUpdateTime: number
}

/** What the inspector reads, for developers. Only `getSession` of an ADK session service is used. */
export interface DeveloperAccess {
  readonly appName: string
  readonly sessions: {
    getSession(request: {
      readonly appName: string
      readonly userId: string
      readonly sessionId: string
    }): Promise<StoredSession | undefined>
  }
}

const PATH = /^\/studio\/sessions\/([^/]+)$/

/** Returns the id of the chat whose session a request asks for. */
export function matchSession({ method, url = '' }: IncomingMessage): string | undefined {
  const [, id] = (method === 'GET' && PATH.exec(url.split('?', 1)[0] ?? '')) || []
  try {
    return id === undefined ? undefined : decodeURIComponent(id)
  } catch {
    // A path that is not encoded correctly names no chat.
    return undefined
  }
}

interface SessionRequest {
  readonly access: DeveloperAccess
  readonly authenticate: Authenticate | undefined
  readonly chatId: string
}

/** Sends the session of a chat with its events and its state to the owner of the chat. Never rejects. */
export async function sendSession(
  { access, authenticate, chatId }: SessionRequest,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const principal = await authenticate?.(toAuthenticateRequest(request))
    if (!principal) throw new ProtocolError('unauthenticated')
    const { appName, sessions } = access
    const session = await sessions.getSession({
      appName,
      userId: principal.id,
      sessionId: chatId,
    })
    if (!session) throw new ProtocolError('unknown-chat')
    const { id, userId, state, events, lastUpdateTime } = session
    writeJson(response, { id, appName, userId, state, events, lastUpdateTime })
  } catch (thrown) {
    const error = thrown instanceof ProtocolError ? thrown : new ProtocolError('internal')
    writeJson(response, error, error.status)
  }
}
