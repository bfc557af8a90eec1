import type { Chat } from '@ai-sdk/react'
import type { UITools } from 'ai'

import type { AdkApi } from '../../client/api/adk-api.ts'
import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import { readProblem } from '../reading/problem.ts'
import { planRecovery, planRecoveryAlone } from '../reading/recovery.ts'

/** Goes on after a problem, by what the server has; without a way to ask it, by what is shown. What was done is never done again. */
export async function recoverChat<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  api: Pick<AdkApi, 'loadChat'> | undefined,
): Promise<void> {
  if (!api) return recoverAlone(chat)
  const { messages, running } = await api.loadChat(chat.id)
  // The server's messages are those of this chat, with its tools.
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

async function recoverAlone<Tools extends UITools>(chat: Chat<AdkUIMessage<Tools>>): Promise<void> {
  const { error, messages } = chat
  const isDisconnected =
    error !== undefined && readProblem(error, messages, 0).kind === 'disconnected'
  switch (planRecoveryAlone(messages, { isDisconnected })) {
    case 'resume':
      return chat.resumeStream()
    case 'keep':
      return chat.clearError()
    case 'regenerate':
      return chat.regenerate()
  }
}
