import { type AuthConfig, FunctionTool } from '@google/adk'
import { z } from 'zod'

interface CalendarOptions {
  /** The URL of the calendar's API. */
  readonly eventsUrl: string
  /** The language of a user, for the titles of the sample events. */
  readonly languageOf: (userId: string) => string
}

const CALENDAR: AuthConfig = {
  credentialKey: 'calendar',
  authScheme: { type: 'oauth2', flows: {} },
}

/** Returns the events of today. Needs the user to sign in to the calendar once. */
export function createGetCalendar({ eventsUrl, languageOf }: CalendarOptions) {
  return new FunctionTool({
    name: 'get_calendar',
    description: "Lists today's events of the user's calendar.",
    parameters: z.object({}),
    execute: async (_args, context) => {
      const token = context?.getAuthResponse(CALENDAR)?.oauth2?.accessToken
      if (!context || token === undefined) {
        context?.requestCredential(CALENDAR)
        return WAITING
      }
      const response = await fetch(eventsUrl, {
        headers: {
          authorization: `Bearer ${token}`,
          'accept-language': languageOf(context.userId),
        },
        ...(context.abortSignal && { signal: context.abortSignal }),
      })
      if (response.status === 401) {
        // The calendar does not accept the token any more.
        context.requestCredential(CALENDAR)
        return WAITING
      }
      return Events.parse(await response.json())
    },
  })
}

const WAITING = { status: 'waiting for a sign-in' }

const Events = z.object({
  owner: z.string(),
  events: z.array(z.object({ time: z.string(), title: z.string() })),
  note: z.string(),
})
