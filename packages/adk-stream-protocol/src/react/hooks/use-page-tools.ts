import type { Chat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { useEffect } from 'react'

import { type BrowserTools, callTool } from '../../client/tools/browser-tools.ts'
import { runCall } from '../../client/tools/run-call.ts'
import { type Call, nameCall } from '../reading/call.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import type { LocalToolResults } from './local-tool-results.ts'

interface PageTools<Message extends UIMessage> {
  readonly chat: Chat<Message>
  /** Nothing for a chat that is attached. */
  readonly answers: LocalToolResults | undefined
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
    if (isBusy({ status })) return
    // A failure of the request that follows is the chat's error.
    for (const call of answers.takeCalls(last)) void giveOutput(chat, call, tools)
  }, [chat, answers, tools, status, last])
}

async function giveOutput<Message extends UIMessage>(
  chat: Chat<Message>,
  call: Call,
  tools: BrowserTools,
): Promise<void> {
  const tool = nameCall(call)
  const { toolCallId } = call
  const run = (): unknown => callTool(tools[tool], call.input as never)
  // Tools by name are not known to the compiler here.
  await chat.addToolOutput((await runCall({ tool, toolCallId, run })) as never)
}
