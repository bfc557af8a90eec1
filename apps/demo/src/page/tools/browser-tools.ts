import { changeBgm } from './change-bgm.ts'
import { getLocation } from './get-location.ts'

/** The browser tools of this page. If one throws, the model receives the error message. */
export const BROWSER_TOOLS = { get_location: getLocation, change_bgm: changeBgm }
