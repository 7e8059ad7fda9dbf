/** What the page uses of the vendored library. */
export type Child = unknown;
export interface Ref<T> {
  current: T;
}
export declare function html(strings: TemplateStringsArray, ...values: unknown[]): Child;
export declare function h(type: unknown, props: object | null, ...children: Child[]): Child;
export declare function render(child: Child, parent: Element): void;
export declare function useState<T>(initial: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export declare function useReducer<S, A>(reducer: (state: S, action: A) => S, initial: S): [S, (action: A) => void];
export declare function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export declare function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export declare function useRef<T>(initial: T): Ref<T>;
export declare function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
export declare function useCallback<F>(callback: F, inputs: readonly unknown[]): F;
export declare function useErrorBoundary(onError?: (error: unknown) => void): [unknown, () => void];
