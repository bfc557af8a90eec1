import type { Chat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { useEffect } from 'react'

import type { BrowserTools } from '../../client/browser-tools.ts'
import { type Call, nameCall } from '../reading/call.ts'
import { isBusy } from '../reading/is-busy.ts'
import type { PageAnswers } from './page-answers.ts'
import { callTool } from './use-browser-tools.ts'

interface PageTools<Message extends UIMessage> {
  readonly chat: Chat<Message>
  /** Nothing for a chat that is attached. */
  readonly answers: PageAnswers | undefined
  readonly tools: BrowserTools | undefined
}

const NONE: BrowserTools = {}

/** Runs what the model asks of the page in a chat of the AI SDK alone. */
export function usePageTools<Message extends UIMessage>(
  { chat, answers, tools = NONE }: PageTools<Message>,
  last: Message | undefined,
): void {
  const { status } = chat
  useEffect(() => {
    if (!answers) return
    answers.use(tools)
    // Until the stream has ended, more may come: a question about this very call.
    if (isBusy(status)) return
    // A failure of the request that follows is the chat's error.
    for (const call of answers.takeCalls(last)) void run(chat, call, tools)
  }, [chat, answers, tools, status, last])
}

async function run<Message extends UIMessage>(
  chat: Chat<Message>,
  call: Call,
  tools: BrowserTools,
): Promise<void> {
  const tool = nameCall(call)
  const { toolCallId } = call
  // Tools by name are not known to the compiler here.
  const give = async (output: object): Promise<void> => chat.addToolOutput(output as never)
  let output: unknown
  try {
    output = (await callTool(tools[tool], call.input as never)) ?? null
  } catch (error) {
    const errorText = error instanceof Error ? error.message : String(error)
    return give({ state: 'output-error', tool, toolCallId, errorText })
  }
  await give({ tool, toolCallId, output })
}
