import type { Chunk } from '../../protocol/chunk.ts'
import { foldChunk } from '../../protocol/fold-chunks.ts'
import type { Message, MessagePart } from '../../protocol/message.ts'
import { type ServerTurn, readChunks } from '../connection/transport.ts'
import {
  type MessageView,
  hasSameContent,
  keepResponses,
  putMessage,
  showUserMessage,
  type MessageTarget,
} from '../connection/chat-messages.ts'
import { isSyncChunk } from './next-sync.ts'
import type { Refusal, SyncContext } from './sync-state.ts'

interface Reloaded {
  /** The ids of the stored messages. */
  readonly known: readonly string[]
  readonly isRunning: boolean
}

/** Shows the stored messages. Returns undefined if they cannot be loaded. `edited`: see `ChatObserver`. */
export async function reload(
  { chat, load, dispatch }: SyncContext,
  edited?: MessageView,
): Promise<Reloaded | undefined> {
  const { messages: shown } = chat
  const loaded = await load()
  if (!loaded) return undefined
  const isOther = ({ id, parts }: MessageView): boolean =>
    id === edited?.id && !hasSameContent(edited, { parts })
  const stored = loaded.messages.filter((message) => !isOther(message))
  if (stored.length === loaded.messages.length) await dispatch({ type: 'reloaded', loaded, shown })
  return { known: stored.map(({ id }) => id), isRunning: loaded.running }
}

/** Loads what the page does not show. */
export async function loadForCatchUp(
  { load, dispatch }: SyncContext,
  after: string | undefined,
): Promise<void> {
  try {
    await dispatch({ type: 'loaded', loaded: await load(after) })
  } catch (error) {
    await dispatch({ type: 'catch-up-failed', error })
  }
}

/** Shows what became of refused responses. */
export async function checkRefusal(context: SyncContext, refusal: Refusal): Promise<void> {
  const loaded = await reload(context).catch(context.reportError)
  const { known = [], isRunning = false } = loaded ?? {}
  await context.dispatch({ ...refusal, type: 'refusal-checked', known, isRunning })
}

/** Lets the AI SDK read the running turn. */
export async function resumeStream({ chat, dispatch }: SyncContext): Promise<void> {
  const { messages } = chat
  await chat.resumeStream()
  await dispatch({ type: 'turn-read', wasRunning: chat.messages !== messages })
}

/** Reads the running turn into a message that is not the last one, which the AI SDK cannot do. */
export async function readTurn(context: SyncContext, messageId: string): Promise<void> {
  const { chat, channel, dispatch } = context
  try {
    const stream = await channel.reconnectToStream({ chatId: chat.id })
    if (stream)
      await showServerTurn(context, { messageId, continues: false, chunks: readChunks(stream) })
    await dispatch({ type: 'turn-read', wasRunning: stream !== null })
  } catch (error) {
    await dispatch({ type: 'catch-up-failed', error })
  }
}

/** Writes a turn that the chat did not request into its messages. */
export async function showServerTurn(
  { chat, dispatch }: SyncContext,
  turn: ServerTurn,
): Promise<void> {
  const { messageId, userMessage } = turn
  const isNew = !chat.messages.some(({ id }) => id === messageId)
  void dispatch({ type: 'turn-shown', messageId, isSpokenReply: isNew && !userMessage })
  try {
    await showTurn(chat, { ...turn, chunks: observeChunks(turn.chunks, dispatch) })
  } finally {
    void dispatch({ type: 'shown-turn-ended', messageId })
  }
}

/** Writes a turn that the chat did not request into its messages, as its chunks arrive. */
export async function showTurn(chat: MessageTarget, turn: ServerTurn): Promise<void> {
  const { messageId, userMessage, continues, chunks } = turn
  if (userMessage) showUserMessage(chat, userMessage)
  const known = chat.messages.find(({ id }) => id === messageId)
  const message: Message =
    continues && known
      ? // The chat's messages come from the bridge.
        (structuredClone(known) as unknown as Message)
      : { id: messageId, role: 'assistant', parts: [] }
  let isScheduled = false
  const write = (): void => {
    isScheduled = false
    const shown = chat.messages.find(({ id }) => id === messageId)?.parts ?? []
    const parts = keepResponses(message.parts, shown)
    // The next chunks are folded into it.
    if (parts !== message.parts) message.parts = structuredClone(parts) as unknown as MessagePart[]
    chat.messages = putMessage(chat.messages, structuredClone(message))
  }
  for await (const chunk of chunks) {
    foldChunk(message, chunk)
    if (isScheduled) continue
    // A replayed turn arrives at once. One write for all of its chunks keeps the page from showing it grow again.
    isScheduled = true
    setTimeout(write, 0)
  }
  if (message.parts.length > 0) write()
}

async function* observeChunks(
  chunks: AsyncIterable<Chunk>,
  dispatch: SyncContext['dispatch'],
): AsyncGenerator<Chunk, void> {
  for await (const chunk of chunks) {
    if (isSyncChunk(chunk)) void dispatch({ type: 'chunk', chunk, source: 'shown' })
    yield chunk
  }
}
