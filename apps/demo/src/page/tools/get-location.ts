import { BrowserToolError } from './browser-tool-error.ts'

const TIMEOUT_MS = 15_000

/** Returns the position of the browser, which asks the person for permission. */
export function getLocation(): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      ({ coords: { latitude, longitude, accuracy } }) => resolve({ latitude, longitude, accuracy }),
      ({ code }) => reject(new BrowserToolError(explain(code))),
      { timeout: TIMEOUT_MS, maximumAge: 60_000 },
    )
  })
}

function explain(code: number): string {
  switch (code) {
    case GeolocationPositionError.PERMISSION_DENIED:
      return "The user's browser does not allow this page to know the position."
    case GeolocationPositionError.TIMEOUT:
      return "The user's browser did not find the position in time."
    default:
      return "The user's browser cannot tell the position."
  }
}
