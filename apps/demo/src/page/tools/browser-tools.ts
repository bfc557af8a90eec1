import { changeBgm } from './change-bgm.ts'
import { getLocation } from './get-location.ts'

/** What the model may ask of this page. What a tool throws is told to the model in the words of the error. */
export const BROWSER_TOOLS = { get_location: getLocation, change_bgm: changeBgm }
