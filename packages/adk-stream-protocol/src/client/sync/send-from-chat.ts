import { isRecord } from '../../protocol/guards.ts'
import { AdkError, isAway, readErrorCode } from '../adk-error.ts'
import type { ServerTurn } from '../connection/transport.ts'
import type { Decision, ToolOutput } from './attachable-chat.ts'
import type { MessageView } from '../connection/chat-messages.ts'
import { isStopped, markUnsent } from './merge-stored.ts'
import { reload, showServerTurn } from './read-into-chat.ts'
import type { DecisionSupplement } from '../connection/response-states.ts'
import type { SyncContext } from './sync-state.ts'
import { withoutSent } from './catch-up.ts'

/** Shows a decision in the chat, then sends it while the stream stays open. */
export async function sendDecision(
  { chat, channel, original, dispatch }: SyncContext,
  decision: Decision,
  supplement: DecisionSupplement | undefined,
): Promise<void> {
  const stream = channel.openStream(chat.id)
  const { id, ...given } = decision
  // The chat first: its outcome must not arrive before the decision.
  await original.addDecision(decision)
  try {
    const approval = await stream?.decide({
      chatId: chat.id,
      approvalId: id,
      ...given,
      ...supplement,
    })
    await dispatch({ type: 'decision-acknowledged', id, approval: approval ?? '' })
  } catch (error) {
    await dispatch({ type: 'responses-refused', ids: [id], error, isUnreported: true })
  }
}

/** Sends the output of a browser tool outside requests, and shows it in the chat if it is not shown yet. */
export async function sendOutput(
  { chat, channel, original, dispatch }: SyncContext,
  output: ToolOutput,
  isShown: boolean,
): Promise<void> {
  const { toolCallId, state, output: value, errorText = '' } = output
  if (!isShown) await original.addOutput(output)
  const result = state === 'output-error' ? { errorText } : { output: value }
  try {
    await channel.toolOutput({ chatId: chat.id, toolCallId, ...result })
    await dispatch({ type: 'output-acknowledged', id: toolCallId })
  } catch (error) {
    // The call has a result: this one, if it was sent before and has arrived, or another one, which is loaded.
    if (error instanceof AdkError && error.code === 'nothing-new')
      await dispatch({ type: 'output-acknowledged', id: toolCallId })
    else await dispatch({ type: 'output-failed', output, error })
  }
}

/** Replaces an output that JSON cannot represent by an error, so that the model gets a result. */
export function toSendable(given: ToolOutput): ToolOutput {
  if (given.state === 'output-error') return given
  const { tool, toolCallId } = given
  try {
    // JSON.stringify returns undefined for `undefined` and for functions.
    return JSON.stringify(given.output) === undefined ? { ...given, output: null } : given
  } catch {
    const errorText = `The output of ${tool} cannot be written as JSON.`
    return { tool, toolCallId, state: 'output-error', errorText }
  }
}

/** CL853: sends queued responses, and then a message that could not be sent before: the error of the message is gone with this request. */
export async function sendResponses(context: SyncContext, messageId: string): Promise<void> {
  const { chat, original } = context
  // Its reply may have begun: nothing of it is stored if the store has failed.
  const last = chat.messages.findLast(({ role }) => role === 'user')
  const hasFailed = chat.status === 'error' && last !== undefined && !isStopped(last)
  await original.sendMessage(undefined, { messageId })
  const { error } = chat
  // If no server took the responses, the message and an error are still there, and the responses are sent again.
  const isLater = error !== undefined && (isAway(error) || readErrorCode(error) === undefined)
  if (hasFailed && !isLater) await sendAgain(context, last)
}

/** CL851: sends a refused text as a request, so that a second refusal is the error of the chat, which can be recovered from. */
export async function sendRefusedText(
  context: SyncContext,
  messageId: string,
  error: unknown,
): Promise<void> {
  // SE1120: the request would name the person who is signed in now.
  if (error instanceof AdkError && error.code === 'other-principal')
    return context.reportError(error)
  const message = context.chat.messages.find(({ id }) => id === messageId)
  const isSent = message !== undefined && (await sendAgain(context, message))
  if (!isSent) context.reportError(error)
}

/** Sends a message in a request, unless the server has it. Returns false then. */
async function sendAgain(context: SyncContext, message: MessageView): Promise<boolean> {
  const { chat, channel, idle } = context
  const stored = await reload(context).catch(() => undefined)
  if (stored?.known.includes(message.id) === true) return false
  if (!channel.openStream(chat.id)?.detachReader) await idle.wait()
  chat.messages = chat.messages.filter(({ id }) => id !== message.id)
  await sendMessage(context, message, context.newestRequest.options)
  return true
}

/**
 * A new message does not wait for a stream that is held open by an approval. Its rest is shown above the new reply. CL1221: it waits for
 * any other request, such as that of a decision: two requests of one chat would end each other's errors, and with them the message.
 */
export async function sendMessage(
  context: SyncContext,
  message: unknown,
  options: unknown,
): Promise<void> {
  const { original, reportError, newestRequest } = context
  if (message !== undefined) newestRequest.options = options
  const { messageId: replaced, id = replaced } = isRecord(message) ? message : {}
  const sent = replaced === undefined ? options : nameNewest(context, options, replaced)
  const rest = message === undefined ? undefined : await detachReader(context)
  if (rest) showServerTurn(context, rest).catch(reportError)
  else if (message !== undefined) await context.idle.wait()
  if (message !== undefined && replaced === undefined) markFailed(context)
  if (message !== undefined) noteSent(context, id)
  await keepIfRefused(context, () => original.sendMessage(message, sent))
}

/**
 * CL915: marks a message that has failed, because the AI SDK removes its error when it sends another one. What is stored shows whether a
 * server has received it.
 */
function markFailed({ chat, state, dispatch, canLoad }: SyncContext): void {
  const sync = state()
  const last = chat.messages.findLast(({ role }) => role === 'user')
  if (chat.status !== 'error' || sync.state !== 'attached' || !last || !canLoad()) return
  if (isStopped(last) || withoutSent(sync)?.ids.has(last.id)) return
  chat.messages = chat.messages.map((each) => (each === last ? markUnsent(each, false) : each))
  void dispatch({ type: 'marked' })
}

/**
 * TU1949: names the newest message that the page shows and the server has. The request then removes no newer ones. A page that cannot load
 * messages names none, because it could not show them either.
 */
function nameNewest(
  { chat, state, canLoad }: SyncContext,
  options: unknown,
  replaced?: unknown,
): object {
  const given = isRecord(options) ? options : {}
  const sync = state()
  if (sync.state !== 'attached' || !canLoad()) return given
  const ids = sync.base?.ids
  const users = chat.messages.filter(({ role }) => role === 'user')
  // One that could not be sent is unknown to the server, and one that was stopped may be.
  const isSent = (each: MessageView): boolean =>
    each.id === replaced || (chat.status !== 'error' && !isStopped(each))
  const seen = users.findLast((each) => ids?.has(each.id) === true || isSent(each))
  const body = isRecord(given['body']) ? given['body'] : {}
  return { ...given, ...(seen && { body: { ...body, newestMessageId: seen.id } }) }
}

/** Errors after which the server still has all messages. */
const KEPT = new Set<string | undefined>(['already-acted', 'newer-messages', 'not-rewindable'])

/** Whether a request failed because the server keeps the messages that it would have removed. */
export function keepsMessages(error: Error | undefined): boolean {
  return error !== undefined && KEPT.has(readErrorCode(error))
}

/** CL170: the AI SDK removes messages before it sends a request. If the server keeps them, the chat shows them again, and newer ones. */
async function keepIfRefused(context: SyncContext, request: () => Promise<void>): Promise<void> {
  const { chat, reportError } = context
  const { messages, error: before } = chat
  await request()
  const { error } = chat
  if (error === before || !keepsMessages(error)) return
  chat.messages = messages
  await reload(context).catch(reportError)
}

/** Requests another reply. The rest of the present one is not shown. CL1221: waits for any other request. */
export async function regenerate(
  context: SyncContext,
  options: { readonly messageId?: string } = {},
): Promise<void> {
  const { chat, original, idle, newestRequest } = context
  const { messageId: repliedId, ...rest } = options
  newestRequest.options = rest
  const sent = nameNewest(context, options)
  if (!(await detachReader(context))) await idle.wait()
  // The message is named, so that a lost request can be distinguished from one that the server has handled.
  const messageId = chat.messages.findLast(({ role }) => role === 'assistant')?.id
  noteSent(context, findPrompt(chat.messages, repliedId))
  const isLast = messageId !== undefined && chat.messages.at(-1)?.id === messageId
  const named = { ...(isLast && { messageId }), ...sent }
  await keepIfRefused(context, () => original.regenerate(named))
}

function noteSent({ dispatch }: SyncContext, id: unknown): void {
  void dispatch({ type: 'message-sent', id: typeof id === 'string' ? id : undefined })
}

/** Returns the id of the user message before a reply, by default the last one. */
function findPrompt(messages: readonly MessageView[], replyId: unknown): string | undefined {
  const index = messages.findIndex(({ id }) => id === replyId)
  const shown = index < 0 ? messages : messages.slice(0, index + 1)
  return shown.findLast(({ role }) => role === 'user')?.id
}

/** Ends the stream that the chat reads, if there is one. Resolves with the rest of it when the chat is idle. */
async function detachReader({ chat, channel, idle }: SyncContext): Promise<ServerTurn | undefined> {
  const rest = channel.openStream(chat.id)?.detachReader?.(chat.id)
  if (rest) await idle.wait()
  return rest
}
