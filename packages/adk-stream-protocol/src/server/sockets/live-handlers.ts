import { randomUUID } from 'node:crypto'

import type { Blob } from '@google/genai'

import { ProtocolError } from '../../protocol/errors.ts'
import { checkFileSize, checkFileType, checkText } from '../../protocol/stream-request.ts'
import type { LiveRun } from '../../live/live-run.ts'
import type { ChatKey } from '../../turns/turns.ts'
import { readAgent } from '../routes/chat-routes.ts'
import type { Connection, FrameHandlers } from './frame-handlers.ts'
import type { LiveRuns } from '../chats/live-runs.ts'
import type { LiveSource } from '../chats/live-source.ts'
import type { BridgeLimits } from '../options.ts'
import { Presence } from './chat-subscriptions.ts'
import { openTurnHandlers } from './turn-handlers.ts'

export interface LiveHandlersOptions {
  readonly runs: LiveRuns
  readonly source: LiveSource
  readonly limits: BridgeLimits
}

/** What Gemini Live hears. */
const MICROPHONE = 'audio/pcm;rate=16000'

/** Answers a socket from live conversations: a request is answered as turn by turn, and what is said and heard goes its way. */
export function openLiveHandlers(
  connection: Connection,
  { runs, source, limits }: LiveHandlersOptions,
): FrameHandlers {
  const presence = new Presence(connection, runs, limits.maxLiveChatsPerPrincipal)
  const chatOf = (chatId: string): ChatKey => ({ principalId: connection.principal.id, chatId })
  /** Chooses the agent and tells it who speaks, before a conversation begins in which nothing was written. */
  const introduce = (chatId: string, named?: string) => (): Promise<void> => {
    const agent = { named, ...readAgent(connection.exchange()) }
    return source.introduce(connection.principal, chatOf(chatId), agent)
  }
  const openForSound = (chatId: string): Promise<LiveRun> =>
    presence.during(chatId, () => runs.openForSound(chatOf(chatId), introduce(chatId)))
  const show = async (chatId: string, blob: Blob): Promise<void> =>
    (await openForSound(chatId)).show(blob)
  const turns = openTurnHandlers(connection, {
    source,
    limits,
    audioOf: (chatId) => presence.audioOf(chatId),
  })
  return {
    ...turns,
    send: (frame) => presence.during(frame.id, async () => turns.send(frame)),
    resume: (frame) => presence.during(frame.id, async () => turns.resume(frame)),
    watch: async ({ id, audio = 'base64', agent }) => {
      presence.watch(id, audio)
      try {
        await runs.open(chatOf(id), introduce(id, agent))
      } catch (error) {
        presence.unwatch(id)
        throw error
      }
    },
    unwatch: ({ id }) => presence.unwatch(id),
    text: async ({ id, messageId = randomUUID(), text, agent }) => {
      const message = { id: messageId, parts: [checkText(text, limits)] }
      const asked = { named: agent, ...readAgent(connection.exchange()) }
      const said = { message, replaces: false, hold: true, ...asked }
      presence.show(
        id,
        await presence.during(id, () => source.say(connection.principal, chatOf(id), said)),
      )
    },
    audio: ({ id, data, mimeType }) => show(id, toSound(data, mimeType)),
    image: ({ id, data, mimeType }) => show(id, toPicture(data, mimeType, limits)),
    binary: (bytes) => {
      const chatId = presence.speaking
      if (chatId === undefined) {
        const message = 'Send `watch` with `audio: "binary"` first: a binary frame names no chat.'
        throw new ProtocolError('bad-request', { message })
      }
      return show(chatId, { data: Buffer.from(bytes).toString('base64'), mimeType: MICROPHONE })
    },
    'audio-end': async ({ id }) => {
      // By the way that the sound went, and so after it. Where nobody was heard, there is nothing to end.
      if (runs.isTalking(chatOf(id))) (await openForSound(id)).endAudio()
    },
    activity: async ({ id, state }) => (await openForSound(id)).mark(state),
    interrupt: ({ id }) => runs.find(chatOf(id))?.interrupt(),
    join: (id) => presence.watch(id, 'base64'),
    busy: () => presence.busy,
    close: () => {
      presence.leave()
      turns.close()
    },
  }
}

/** Sound has limits of its own (WS15), and a type that is a sound's. */
function toSound(data: string, mimeType: string): Blob {
  if (/^audio\/[\w.+-]+(?:;\s?[\w-]+=[\w.-]+)*$/i.test(mimeType)) return { data, mimeType }
  const message = 'Sound has a type like `audio/pcm;rate=16000`. Send pictures as `image`.'
  throw new ProtocolError('bad-request', { message })
}

/** A picture is a file, as in a message: of an accepted type, and not too large. */
function toPicture(data: string, mimeType: string, limits: BridgeLimits): Blob {
  if (!mimeType.toLowerCase().startsWith('image/')) {
    const message = 'A picture has a type that begins with `image/`. Send sound as `audio`.'
    throw new ProtocolError('bad-request', { message })
  }
  const type = checkFileType(mimeType, limits)
  checkFileSize(data, limits)
  return { data, mimeType: type }
}
