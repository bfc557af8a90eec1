import { asClientTool } from '../../calls/client-tool.ts'
import type { WaitingCalls } from '../../server/chats/backend.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import { readCallState } from '../../server/chats/host/stored-calls.ts'
import type { BrowserCall } from '../../store/tables/browser-calls.ts'
import type { OpenModule, SweepCore } from '../module.ts'
import { BROWSER_TIMED_OUT } from './browser-tool.ts'

/** Calls that a client runs, which has limited time for each. */
export const openBrowser: OpenModule<object> = () => ({
  waitingCalls: browserCalls,
  sweep: expireBrowserCalls,
})

/** Stores which calls of browser tools wait, and until when. */
const browserCalls: Partial<WaitingCalls> = {
  onWaiting: async (backend, { messageId, ...chat }, calls) => {
    const key = toAppChat(backend, chat)
    for (const [toolCallId, toolName] of calls) {
      const tool = await backend.findTool(key, toolName)
      const { timeoutMs } = (tool && asClientTool(tool)) ?? {}
      const call = { chat: key, messageId, toolCallId }
      if (timeoutMs !== undefined) await backend.store.browserCalls.add(call, timeoutMs)
    }
  },
  onHandedOver: ({ store }, call, timeoutMs) => store.browserCalls.add(call, timeoutMs),
  listHandedOver: async ({ store: { browserCalls: calls } }, chat, limit) =>
    ((await calls.list?.({ chat, limit })) ?? []).map(({ toolCallId }) => toolCallId),
  onDelivered: ({ store }, chat, toolCallIds) => store.browserCalls.drop(chat, toolCallIds),
  onChatDeleted: ({ store }, chat) => store.browserCalls.dropChat(chat),
}

/** Ends the calls whose clients did not send a result in time. */
async function expireBrowserCalls(core: SweepCore): Promise<void> {
  const { ledger, store } = await core.backend.get()
  const { appName, leaseMs } = ledger
  for (const call of await store.browserCalls.takeDue({ appName, leaseMs, limit: 100 }))
    void expire(core, call).catch(core.onError)
}

/** Ends a call that timed out, and resumes its turn without a reader. Does nothing if the result has arrived. */
async function expire({ backend, turnService }: SweepCore, call: BrowserCall): Promise<void> {
  const { chat, messageId, toolCallId } = call
  const opened = await backend.get()
  if (!(await opened.agents.has(chat))) return
  if ((await readCallState(opened, call)) === 'waiting') {
    const outputs = [{ toolCallId, result: BROWSER_TIMED_OUT }]
    const turn = await turnService.resume(chat, messageId, { outputs, background: true })
    await turn.settled
    // The server is closing. The next one expires the call.
    if (turn.signal.aborted) return
  }
  await opened.store.browserCalls.drop(chat, [toolCallId])
}
