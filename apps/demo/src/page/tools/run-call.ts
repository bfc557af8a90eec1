import { getToolName } from 'ai'

import type { Call } from '../chat/approval.ts'
import type { Conversation } from '../chat/conversation.ts'
import { BrowserToolError } from './browser-tool-error.ts'
import { findBrowserTool } from './browser-tools.ts'

/** Runs a call that is for this page, and gives its output to the chat, which sends it. */
export async function runCall({ chat, answers }: Conversation, call: Call): Promise<void> {
  const run = findBrowserTool(call)
  if (!run || !(await claim(call))) return
  const { toolCallId } = call
  const tool = getToolName(call)
  // Approved elsewhere: the part has to say so too, or the AI SDK counts it as invalid once it has an output.
  if (call.state === 'approval-requested') {
    await chat.addToolApprovalResponse({ id: call.approval.id, approved: true })
  }
  const result = await settle(run(call.input), tool)
  answers.addOutput(toolCallId)
  await chat.addToolOutput({ tool, toolCallId, ...result })
}

type Result =
  | { readonly state: 'output-available'; readonly output: Record<string, unknown> }
  | { readonly state: 'output-error'; readonly errorText: string }

async function settle(running: Promise<Record<string, unknown>>, tool: string): Promise<Result> {
  try {
    return { state: 'output-available', output: await running }
  } catch (thrown) {
    const known = thrown instanceof BrowserToolError
    return {
      state: 'output-error',
      errorText: known ? thrown.message : `The tool ${tool} failed.`,
    }
  }
}

/**
 * Whether this tab is the one that runs the call. The claim holds as long as the tab lives: a second tab that looks on does not
 * run the call again, and a tab that is gone leaves it to the next.
 */
function claim({ toolCallId }: Call): Promise<boolean> {
  // Pages that did not come over HTTPS or from this machine have no locks.
  if (!('locks' in navigator)) return Promise.resolve(true)
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(`tool-call/${toolCallId}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null)
        return lock && new Promise(() => undefined)
      })
      .catch(reject)
  })
}
