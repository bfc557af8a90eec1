import type { Chat } from '@ai-sdk/react'
import type { UITools } from 'ai'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import { readProblem } from '../reading/problem.ts'
import { planRecovery, planLocalRecovery } from '../reading/recovery.ts'

/** Recovers a chat from a problem: compares with the server's messages, or uses only those of the page without an `api`. Never repeats a call that ran. */
export async function recoverChat<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  api: Pick<AdkApi, 'loadChat'> | undefined,
): Promise<void> {
  if (!api) return recoverLocally(chat)
  const { messages, running } = await api.loadChat(chat.id)
  // The server returns the messages of this chat, so they have its tools.
  const saved = { messages: messages as unknown as AdkUIMessage<Tools>[], running }
  const recovery = planRecovery(chat.messages, saved)
  switch (recovery.step) {
    case 'resend':
      chat.messages = [...recovery.before]
      return chat.sendMessage(recovery.message)
    case 'resume':
      chat.messages = [...recovery.messages]
      return chat.resumeStream()
    case 'show':
      chat.messages = [...recovery.messages]
      return chat.clearError()
    case 'regenerate':
      return chat.regenerate()
  }
}

async function recoverLocally<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
): Promise<void> {
  const { error, messages } = chat
  const isDisconnected =
    error !== undefined && readProblem(error, messages, 0).kind === 'disconnected'
  switch (planLocalRecovery(messages, { isDisconnected })) {
    case 'resume':
      return chat.resumeStream()
    case 'keep':
      return chat.clearError()
    case 'regenerate':
      return chat.regenerate()
  }
}
