import type { OpenModule } from '../module.ts'
import { createSignInKind } from './sign-in-kind.ts'
import type { SignInBridgeOptions } from './sign-in-options.ts'
import { signInRoutes } from './sign-in-routes.ts'
import { SignIns } from './sign-ins.ts'

/** People sign in to other services for the tools of the agent: a kind of call, its endpoints, and the stored credentials. */
export const openSignIn: OpenModule<SignInBridgeOptions> = ({ signIn, appName }) => {
  // The ledger may have questions from a time when the option was set.
  if (!signIn) return { openKinds: () => [createSignInKind()] }
  let opened: SignIns | undefined
  return {
    openKinds: async (store) => {
      opened = await SignIns.open(signIn, appName, store)
      return [createSignInKind(opened, signIn.baseUrl)]
    },
    createRoutes: (core) => signInRoutes(core, { options: signIn, findSignIns: () => opened }),
  }
}
