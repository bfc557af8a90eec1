import type { DemoInfo } from '../demo-info.ts'
import { APPROVER_ROLE } from './approval-policy.ts'
import { APPROVER_ADDRESS, mayChooseRoles } from './roles.ts'
import type { Settings } from './settings.ts'

/** The files that the page may send. The bridge accepts more. */
const FILES = {
  types: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  maxBytes: 5 * 1_048_576,
}

/** The person who reads the description. */
export interface DemoReader {
  readonly roles: readonly string[]
  /** Whether the page of this person can sign in to the calendar. */
  readonly maySignIn: boolean
}

/** Returns a function that describes the demo to a person. */
export function describeDemo(settings: Settings): (reader: DemoReader) => DemoInfo {
  return ({ roles, maySignIn }) => ({
    modes: ['sse', 'live', 'direct'],
    model: settings.model,
    liveModel: settings.liveModel,
    emulated: settings.geminiKey === undefined,
    signIn: maySignIn,
    files: FILES,
    prices: settings.prices,
    approver: {
      is: roles.includes(APPROVER_ROLE),
      ...(mayChooseRoles(settings) && { address: APPROVER_ADDRESS }),
    },
  })
}
