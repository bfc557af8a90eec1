import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Authenticate, Bridge } from 'adk-stream-protocol/server'
import {
  createStudioListener,
  identify,
  type StudioDescription,
  type StudioListeners,
} from 'adk-stream-protocol-studio'

import type { ApproverInfo } from '../demo-info.ts'
import { APPROVER_ROLE } from './approval-policy.ts'
import type { CalendarService } from './calendar/calendar-service.ts'
import type { DirectRoute } from './direct-route.ts'
import { PAGE_DIR } from './page-dir.ts'
import { PUSH_CHANNEL } from './push.ts'
import { APPROVER_ADDRESS, mayChooseRoles } from './roles.ts'
import type { Settings } from './settings.ts'
import type { SlackService } from './slack/slack-service.ts'

export interface ListenerOptions {
  readonly settings: Settings
  readonly bridge: Bridge
  readonly authenticate: Authenticate
  readonly direct: DirectRoute
  /** The calendar that people can sign in to, if there is one. */
  readonly calendar: CalendarService | undefined
  /** The workspace in which people decide, if there is one. */
  readonly slack: SlackService | undefined
  /** The address of the server in its network, if it can be reached there. */
  readonly networkUrl: string | undefined
}

/** Serves the studio with the demo's page, `/direct`, `/calendar` and `/slack`. */
export function createListener(options: ListenerOptions): StudioListeners {
  const { settings, bridge, authenticate, direct, calendar, slack, networkUrl } = options
  return createStudioListener({
    bridge,
    authenticate,
    pageDir: PAGE_DIR,
    instance: settings.instance,
    allowedHosts: settings.allowedHosts,
    info: ({ principal, host }) => ({
      ...describeDemo(settings, principal?.roles ?? []),
      signIn: calendar?.serves(host) ?? false,
      ...(slack && { push: PUSH_CHANNEL }),
      networkUrl,
    }),
    respond: (request, response) => {
      if (calendar?.respond(request, response) || slack?.respond(request, response)) return true
      const path = `${request.method} ${request.url?.split('?', 1)[0]}`
      if (path === 'POST /direct') void direct(request, response)
      else if (path === 'GET /' && hasCode(request))
        void identify(authenticate, request, response).then((principal) =>
          redirect(response, principal?.roles ?? []),
        )
      else return false
      return true
    },
  })
}

function hasCode({ url = '/' }: IncomingMessage): boolean {
  return (
    URL.canParse(url, 'http://localhost') &&
    new URL(url, 'http://localhost').searchParams.has('code')
  )
}

/** Redirects, so that the code does not stay in the URL or in the browser history. */
function redirect(response: ServerResponse, roles: readonly string[]): void {
  const location = roles.includes(APPROVER_ROLE) ? '/?view=approvals' : `${APPROVER_ADDRESS}&wrong`
  response.writeHead(303, { location, 'cache-control': 'no-store' }).end()
}

/** Describes the demo to a person with these roles. */
function describeDemo(settings: Settings, roles: readonly string[]): StudioDescription {
  const approver: ApproverInfo = {
    is: roles.includes(APPROVER_ROLE),
    ...(mayChooseRoles(settings) && { address: APPROVER_ADDRESS }),
  }
  return {
    modes: ['sse', 'live', 'direct'],
    model: settings.model,
    liveModel: settings.liveModel,
    emulated: settings.geminiKey === undefined,
    prices: settings.prices,
    plugin: { approver },
  }
}
