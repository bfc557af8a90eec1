import type { Slot } from './plugin.ts'
import { usePlugin } from './plugin-context.ts'

/** Renders the component of the plug-in for this place, if there is one. */
export function SlotContent({ name }: { readonly name: Slot }) {
  const Content = usePlugin().slots?.[name]
  return Content ? <Content /> : null
}
