import { BlockList, isIP } from 'node:net'

import { z } from 'zod'

import { ProtocolError } from '../../protocol/errors.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { Backend } from '../../server/chats/backend.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import { toSessionKey } from '../../server/chats/chat-sessions.ts'
import type { Exchange, Reply } from '../../server/http/exchange.ts'
import { checkInput, readJson, reply } from '../../server/http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../../server/http/http-router.ts'
import type { Core } from '../module.ts'
import { readSessionFile } from './session-file.ts'

/** A handler for the chat of a request. */
type HandleChat = (
  chat: AppChatRef,
  request: AuthenticatedRequest,
  backend: Backend,
) => Promise<Reply>

/** The routes of the session of a chat: read it, change its state, import one, and list its artifacts. */
export function sessionRoutes(core: Core): readonly Route[] {
  const { backend, artifactService, changeChat, limits } = core

  const edit: HandleChat = async (chat, { exchange }, { sessions }) => {
    const { state } = checkInput(StateChange, await readJson(exchange, limits), BAD_STATE)
    await changeChat(chat, async () => {
      if (!(await sessions.exists(chat))) throw new ProtocolError('unknown-chat')
      await sessions.setState(chat, state)
    })
    return reply(204)
  }

  const importFile: HandleChat = async (chat, { exchange, principal }, opened) => {
    const { sessions, agents } = opened
    const maxBodyBytes = Math.max(limits.maxBodyBytes, MAX_FILE_BYTES)
    const { events, state, agent } = readSessionFile(await readJson(exchange, { maxBodyBytes }))
    const chosen = await agents.choose(principal, chat, { named: agent })
    await changeChat(chat, async () => {
      if (await sessions.exists(chat))
        throw new ProtocolError('bad-request', { message: CHAT_EXISTS })
      await agents.record(chat, chosen)
      const session = await sessions.service.createSession({ ...toSessionKey(chat), state })
      try {
        for (const event of events) await sessions.service.appendEvent({ session, event })
      } catch (error) {
        // A part of a conversation is not one.
        await sessions.delete(chat)
        throw error
      }
    })
    return reply(201, { chatId: chat.chatId })
  }

  const listArtifacts: HandleChat = async (chat) => {
    const key = toSessionKey(chat)
    const artifacts = []
    for (const name of (await artifactService?.listArtifactKeys(key)) ?? []) {
      const versions = await artifactService?.listVersions({ ...key, filename: name })
      artifacts.push({ name, versions: (versions ?? []).toSorted((one, other) => other - one) })
    }
    artifacts.sort((one, other) => (one.name < other.name ? -1 : 1))
    return reply(200, { artifacts })
  }

  const handle =
    (handler: HandleChat) =>
    async (request: AuthenticatedRequest): Promise<Reply> => {
      requireThisMachine(request.exchange)
      const opened = await backend.get()
      const chat = { principalId: request.principal.id, chatId: request.id }
      return handler(toAppChat(opened, chat), request, opened)
    }
  return [
    { method: 'GET', path: '/chats/:id/session', handle: handle(readSession) },
    { method: 'PATCH', path: '/chats/:id/session', handle: handle(edit) },
    { method: 'POST', path: '/chats/:id/session', handle: handle(importFile) },
    { method: 'GET', path: '/chats/:id/artifacts', handle: handle(listArtifacts) },
  ]
}

/** Returns the session of a chat. */
const readSession: HandleChat = async (chat, _request, { sessions, agents, chats }) => {
  const session = await sessions.get(chat)
  if (!session) throw new ProtocolError('unknown-chat')
  const { id, appName, userId, state, events, lastUpdateTime } = session
  const { chatId, ...owner } = chat
  const entry = (await chats.find(owner, [chatId])).get(chatId) ?? {}
  const described = agents.describe(entry)
  return reply(200, { id, appName, userId, ...described, state, events, lastUpdateTime })
}

/** The body of `PATCH /chats/:chatId/session`. ADK forgets `temp:` keys at the end of a run. */
const StateChange = z.strictObject({
  state: z.record(
    z
      .string()
      .min(1)
      .max(256)
      .regex(/^(?!temp:)/),
    z.json(),
  ),
})

const BAD_STATE =
  'Send { "state": { key: value } }. A key has 1 to 256 characters and does not begin with `temp:`.'

const CHAT_EXISTS = 'The chat exists. Import the session into a new chat.'

/** Sessions contain files. */
const MAX_FILE_BYTES = 64 * 1_048_576

/** Throws if a request comes from another machine, or if its origin is not known. */
export function requireThisMachine({ address = '' }: Exchange): void {
  const family = isIP(address)
  if (family !== 0 && LOOPBACK.check(address, family === 6 ? 'ipv6' : 'ipv4')) return
  throw new ProtocolError('not-allowed', {
    message: 'Only the machine of the server can read or change this.',
  })
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8)
LOOPBACK.addAddress('::1', 'ipv6')
