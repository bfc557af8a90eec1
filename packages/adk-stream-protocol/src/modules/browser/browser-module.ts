import type { OpenModule } from '../module.ts'
import { browserCalls, expireBrowserCalls } from './browser-calls.ts'

/** Calls that a client runs, which has limited time for each. */
export const openBrowser: OpenModule<object> = () => ({
  waitingCalls: browserCalls,
  sweep: expireBrowserCalls,
})
