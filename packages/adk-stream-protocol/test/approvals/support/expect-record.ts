import { expect } from 'vitest'

import type { ChatMessage, ChatPart } from '../../support/chat-probe.ts'
import { clients } from '../../support/clients.ts'
import type { ApprovingChat } from './approving-chat.ts'
import { approvalOf } from './approving-chat.ts'
import type { Page } from './page.ts'

/**
 * Checks what must hold after every scenario: the client is idle without an error, each turn is one message of the person and one of the
 * assistant, both versions accept the messages, and the stored messages equal those of the client.
 */
export async function expectRecord(page: Page, chat: ApprovingChat): Promise<void> {
  expect(chat.error).toBeUndefined()
  expect(chat.status).toBe('ready')
  await expectValid(chat.messages)
  const stored = await readWhenEnded(page)
  await expectValid(stored)
  expect(stored.map(describeMessage)).toEqual(chat.messages.map(describeMessage))
}

/** The client may read the end of a turn before the server has noted it. */
export async function readWhenEnded(page: Page): Promise<readonly ChatMessage[]> {
  let stored: readonly ChatMessage[] = []
  const isRunning = async (): Promise<boolean> => {
    const { messages, running } = await page.conversation()
    stored = messages
    return running
  }
  await expect.poll(isRunning).toBe(false)
  return stored
}

/** Messages that alternate between the person and the assistant, and that both versions accept. */
export async function expectValid(messages: readonly ChatMessage[]): Promise<void> {
  expect(messages.map(({ role }) => role)).toEqual(
    messages.map((_message, index) => (index % 2 === 0 ? 'user' : 'assistant')),
  )
  expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length)
  for (const { validateMessages } of clients) await validateMessages(messages)
}

function describeMessage({ id, role, parts }: ChatMessage): object {
  return { id, role, parts: parts.map(describePart) }
}

/** The fields of a part that a person can see. */
function describePart(part: ChatPart): object {
  const { type, text, toolCallId, input, output, errorText, data } = part
  // A client keeps its own click on a call that had ended without a decision. The server does not have it.
  const approval = part.state === 'output-error' ? undefined : approvalOf(part)
  // Text of the person has no state, or `done`, depending on who created the part.
  const state = type === 'text' ? undefined : part.state
  return JSON.parse(
    JSON.stringify({ type, state, text, toolCallId, input, output, errorText, data, approval }),
  ) as object
}
