/** Scrollable text. It is focusable, so that it can be scrolled by keyboard. */
export function ScrolledText({ children }: { readonly children: string }) {
  // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
  return <pre tabIndex={0}>{children}</pre>
}
