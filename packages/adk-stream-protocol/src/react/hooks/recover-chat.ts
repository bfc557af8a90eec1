import type { Chat } from '@ai-sdk/react'
import type { UITools } from 'ai'

import type { AdkApi } from '../../client/adk-api.ts'
import type { AdkUIMessage } from '../../client/adk-ui-message.ts'
import { planRecovery } from '../reading/recovery.ts'

/** Goes on after a problem, by what the server has; without a way to ask it, the answer is made anew. */
export async function recoverChat<Tools extends UITools>(
  chat: Chat<AdkUIMessage<Tools>>,
  api: Pick<AdkApi, 'loadChat'> | undefined,
): Promise<void> {
  if (!api) return chat.regenerate()
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
