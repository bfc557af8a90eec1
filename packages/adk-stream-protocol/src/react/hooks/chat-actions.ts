import type { UIMessage, UITools } from 'ai'
import type { Chat } from '@ai-sdk/react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import { isBusy, type ToolOutput } from '../../client/sync/attachable-chat.ts'
import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { mergeStored } from '../../client/sync/merge-stored.ts'
import { AdkError } from '../../client/adk-error.ts'
import type { Approval, Decision } from '../reading/approval.ts'
import { mayWait, readApprovals } from '../reading/approval.ts'
import { getToolName, isCall } from '../reading/call.ts'
import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import { type SavedChat, readProblem, planRecovery, planLocalRecovery } from '../reading/problem.ts'

interface DecisionTarget {
  readonly chat: {
    readonly messages: readonly UIMessage[]
    addToolApprovalResponse(response: {
      id: string
      approved: boolean
      reason?: string
      options?: { body?: object }
    }): void | PromiseLike<void>
    addToolOutput(output: ToolOutput): void | PromiseLike<void>
  }
  readonly attached: AttachedChat | undefined
  readonly api: Pick<AdkApi, 'decide'> | undefined
  /** Whether the server can be reached, as far as the page knows. */
  readonly isConnected: boolean
}

/** Sends a decision through the `api`, the attached chat, or the plain AI SDK chat. */
export async function sendDecision(
  { chat, attached, api, isConnected }: DecisionTarget,
  approvalId: string,
  decision: Decision,
): Promise<void> {
  const { approved, ...supplement } = decision
  // If several people must approve, one vote decides nothing yet, so the chat must not show a decision.
  const approval = findApproval(chat.messages, approvalId)
  const hasOffer = decision.offer !== undefined
  // The person gives a grant for what they see now.
  const keep = !hasOffer && mayWait(decision, approval)
  if (api && (hasOffer || (approval?.approvers ?? 1) > 1 || approval?.kind !== undefined)) {
    await api.decide(approvalId, decision, { keep })
  } else if (!isConnected && !keep) {
    throw new AdkError('unavailable', 'The server cannot be reached.')
  } else if (approval?.kind !== undefined) {
    await answerAsOutput(chat, approvalId, decision)
  } else if (!attached) {
    await respondInChat(chat, approvalId, decision)
  } else if (approved) {
    await attached.approve(approvalId, supplement)
  } else {
    await attached.deny(approvalId, supplement.reason, supplement.offer)
  }
}

/** Decides as a stock client does: with the response of the AI SDK, which the next request sends. */
async function respondInChat(
  chat: DecisionTarget['chat'],
  id: string,
  { approved, reason, payload, preview, offer }: Decision,
): Promise<void> {
  const body = {
    ...(payload !== undefined && { payloads: { [id]: payload } }),
    ...(preview !== undefined && { previews: { [id]: preview } }),
    ...(offer !== undefined && { offers: { [id]: offer } }),
  }
  await chat.addToolApprovalResponse({
    id,
    approved,
    ...(reason !== undefined && { reason }),
    ...(Object.keys(body).length > 0 && { options: { body } }),
  })
}

/** Answers a question as a stock client does: with the output of its call. */
async function answerAsOutput(
  chat: DecisionTarget['chat'],
  approvalId: string,
  { approved, payload, reason = '' }: Decision,
): Promise<void> {
  for (const message of chat.messages)
    for (const [toolCallId, approval] of readApprovals(message)) {
      const call = message.parts.filter(isCall).find((part) => part.toolCallId === toolCallId)
      if (approval.approvalId !== approvalId || !call) continue
      const tool = getToolName(call)
      await chat.addToolOutput(
        approved
          ? { tool, toolCallId, output: payload }
          : { tool, toolCallId, state: 'output-error', errorText: reason },
      )
    }
}

function findApproval(messages: readonly UIMessage[], approvalId: string): Approval | undefined {
  return messages
    .flatMap((message) => [...readApprovals(message).values()])
    .find((approval) => approval.approvalId === approvalId)
}

/** The recoveries that load what is stored, by chat. */
const LOADING = new WeakMap<object, Promise<void>>()

/**
 * Recovers a chat from a problem: compares with the server's messages, or uses only those of the page without an `api`. Never repeats a
 * call that ran. Several at the same time, as when the person returns to the page, are one.
 */
export async function recoverChat<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  api: Pick<AdkApi, 'loadChat'> | undefined,
  attached?: AttachedChat,
): Promise<void> {
  if (isBusy(chat)) return
  if (!api) return recoverLocally(chat)
  const recovered = LOADING.get(chat) ?? compareAndRecover(chat, api, attached)
  LOADING.set(chat, recovered)
  return recovered
}

async function compareAndRecover<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  api: Pick<AdkApi, 'loadChat'>,
  attached: AttachedChat | undefined,
): Promise<void> {
  const { error } = chat
  const loading = loadStored<Tools>(chat.id, api)
  const stored = await loading.finally(() => LOADING.delete(chat))
  // What was loaded may be older than a request that was sent meanwhile.
  if (isBusy(chat) || chat.error !== error) return
  const recovery = planRecovery(chat.messages, stored)
  const options = attached?.requestOptions
  switch (recovery.step) {
    case 'resend':
      setStored(chat, stored, attached)
      return chat.sendMessage(recovery.message, options)
    case 'replace':
      // Without the newer messages of the server, which the person has not seen: it then rejects the request (TU1949).
      return chat.sendMessage({ ...recovery.message, messageId: recovery.message.id }, options)
    case 'resume':
      return resumeOrShow(chat, stored, { api, attached })
    case 'show':
      chat.clearError()
      return showStored(chat, stored, attached)
    case 'regenerate':
      // The page may lack newer messages. What is regenerated is the reply that was looked at, and that is the last stored one.
      setStored(chat, stored, attached)
      return chat.regenerate(options)
  }
}

/** Loads the messages of a chat. The server returns those of this chat, so they have its tools. */
async function loadStored<Tools extends UITools>(
  chatId: string,
  api: Pick<AdkApi, 'loadChat'>,
): Promise<SavedChat<AdkUIMessage<Tools>>> {
  const { messages, running } = await api.loadChat(chatId)
  return { messages: messages as unknown as AdkUIMessage<Tools>[], running }
}

/** Reads the running reply after the stored messages. If it has ended meanwhile, shows the stored one. */
async function resumeOrShow<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  stored: SavedChat<AdkUIMessage<Tools>>,
  {
    api,
    attached,
  }: { readonly api: Pick<AdkApi, 'loadChat'>; readonly attached: AttachedChat | undefined },
): Promise<void> {
  // This removes the part of the reply that the page has: the reply is read from its start.
  setStored(chat, stored, attached)
  // The chat copies what it is given.
  const { messages: before } = chat
  chat.clearError()
  await chat.resumeStream()
  if (chat.messages !== before || chat.status === 'error') return
  const now = await loadStored<Tools>(chat.id, api)
  if (now.running || chat.messages !== before) return
  await showStored(chat, now, attached)
}

/** Shows the stored messages. CL900: a browser tool runs if its call is shown only now. */
async function showStored<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  stored: SavedChat<AdkUIMessage<Tools>>,
  attached: AttachedChat | undefined,
): Promise<void> {
  if (attached) await attached.showStored(stored)
  else setStored(chat, stored, undefined)
}

function setStored<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  stored: SavedChat<AdkUIMessage<Tools>>,
  attached: AttachedChat | undefined,
): void {
  const responses = attached?.channel.responses.all ?? new Map()
  const shown = { messages: chat.messages, responses }
  // The parts are those of the stored and of the shown messages.
  chat.messages = mergeStored(stored.messages, shown) as AdkUIMessage<Tools>[]
}

async function recoverLocally<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
): Promise<void> {
  const { error, messages } = chat
  const isDisconnected =
    error !== undefined && readProblem(error, messages, 0).kind === 'disconnected'
  switch (planLocalRecovery(messages, { isDisconnected })) {
    case 'resume':
      chat.clearError()
      return chat.resumeStream()
    case 'keep':
      return chat.clearError()
    case 'regenerate':
      return chat.regenerate()
  }
}

/** Marks the last message as stopped, as the server does in the messages that it stores. Whether a user message was sent is not known yet. */
export function markStopped<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  attached?: AttachedChat,
): void {
  const last = chat.messages.at(-1)
  if (!last) return
  const unsent = last.role === 'user' ? { unsent: false } : {}
  const metadata = { ...last.metadata, stopped: true as const, ...unsent }
  chat.messages = [...chat.messages.slice(0, -1), { ...last, metadata }]
  attached?.noteStop()
}
